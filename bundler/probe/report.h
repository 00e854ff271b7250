/* The stages, their state, and the one document that tells it. */
#ifndef REPORT_H
#define REPORT_H

#include "text.h"

typedef enum { DRIVER, DEVICE, LIBRARY, VERSIONS, ENGINES, CREATE, CONVOLUTION, BENCHMARK, STAGE_COUNT } StageId;

typedef enum { NOT_RUN, PASSED, FAILED } Status;

typedef struct {
    Status status;
    Text reason; /* why it did not pass: a sentence without a full stop */
    Text remedy; /* what to do about it, likewise */
    Text facts;  /* a JSON object */
} Stage;

typedef struct {
    Stage stages[STAGE_COUNT];
    int library_major; /* 8, 9, or 0 while it is not known */
} Report;

/* The only report of a process; every stage starts as "not reached". */
Report *report_new(void);

const char *stage_name(StageId id);
StageId stage_of_name(const char *name); /* STAGE_COUNT where there is none */
const char *status_name(Status status);

/* The stage that failed first, in the order of the document, or STAGE_COUNT. */
StageId report_first_failure(const Report *report);
int report_used_gpu(const Report *report);
const char *report_result(const Report *report);
void report_write_json(const Report *report, Text *document);
void report_write_summary(const Report *report, Text *summary);

#endif
