#include "report.h"

static const char *const STAGE_NAMES[STAGE_COUNT] = {
    "driver", "device", "library", "versions", "engines", "create", "convolution", "benchmark"};
static const char *const STATUS_NAMES[] = {"not-run", "passed", "failed"};

enum { SENTENCE_CAPACITY = 4096, FACTS_CAPACITY = 96 * 1024 };

Report *report_new(void) {
    static char reasons[STAGE_COUNT][SENTENCE_CAPACITY], remedies[STAGE_COUNT][SENTENCE_CAPACITY];
    static char facts[STAGE_COUNT][FACTS_CAPACITY];
    static Report report;
    report.library_major = 0;
    for (int id = 0; id < STAGE_COUNT; id++) {
        Stage *stage = &report.stages[id];
        stage->status = NOT_RUN;
        stage->reason = (Text){reasons[id], 0, SENTENCE_CAPACITY, 0};
        stage->remedy = (Text){remedies[id], 0, SENTENCE_CAPACITY, 0};
        stage->facts = (Text){facts[id], 0, FACTS_CAPACITY, 0};
        text_clear(&stage->reason);
        text_clear(&stage->remedy);
        text_clear(&stage->facts);
        text_add(&stage->reason, "not reached");
        text_add(&stage->facts, "{}");
    }
    return &report;
}

const char *stage_name(StageId id) { return STAGE_NAMES[id]; }

StageId stage_of_name(const char *name) {
    int id = 0;
    while (id < STAGE_COUNT && !text_same(STAGE_NAMES[id], name)) id++;
    return (StageId)id;
}

const char *status_name(Status status) { return STATUS_NAMES[status]; }

StageId report_first_failure(const Report *report) {
    int id = 0;
    while (id < STAGE_COUNT && report->stages[id].status != FAILED) id++;
    return (StageId)id;
}

int report_used_gpu(const Report *report) { return report->stages[CONVOLUTION].status == PASSED; }

const char *report_result(const Report *report) {
    if (report_first_failure(report) != STAGE_COUNT) return "failed";
    return report_used_gpu(report) ? "passed" : "passed-without-gpu";
}

static void write_first_failure(const Report *report, Text *document) {
    StageId first = report_first_failure(report);
    json_key(document, "first_failure");
    if (first == STAGE_COUNT) {
        json_raw(document, "null");
        return;
    }
    json_open(document, '{');
    json_member(document, "stage", stage_name(first));
    json_member(document, "reason", report->stages[first].reason.bytes);
    json_member(document, "remedy", report->stages[first].remedy.bytes);
    json_close(document, '}');
}

static void write_stage(StageId id, const Stage *stage, Text *document) {
    text_add(document, id ? ",\n  " : "\n  ");
    text_add(document, "{");
    json_member(document, "stage", stage_name(id));
    json_member(document, "status", status_name(stage->status));
    json_member(document, "reason", stage->reason.bytes);
    json_member(document, "remedy", stage->remedy.bytes);
    json_key(document, "facts");
    /* Facts that did not fit are no JSON any more. */
    json_raw(document, stage->facts.is_cut ? "{}" : stage->facts.bytes);
    json_close(document, '}');
}

void report_write_json(const Report *report, Text *document) {
    json_open(document, '{');
    json_member(document, "probe", "cudnn-check");
    json_member(document, "probe_version", "1");
    json_key(document, "library_major");
    if (report->library_major) json_number(document, (unsigned)report->library_major);
    else json_raw(document, "null");
    json_member(document, "result", report_result(report));
    write_first_failure(report, document);
    json_key(document, "stages");
    text_add(document, "[");
    for (int id = 0; id < STAGE_COUNT; id++) write_stage((StageId)id, &report->stages[id], document);
    text_add(document, "\n]}\n");
}

void report_write_summary(const Report *report, Text *summary) {
    for (int id = 0; id < STAGE_COUNT; id++) {
        const Stage *stage = &report->stages[id];
        text_format(summary, "%s", stage_name((StageId)id));
        for (size_t column = text_length(stage_name((StageId)id)); column < 13; column++) text_add(summary, " ");
        text_add(summary, status_name(stage->status));
        if (stage->reason.size) text_format(summary, ": %s", stage->reason.bytes);
        text_add(summary, "\n");
    }
    StageId first = report_first_failure(report);
    if (first != STAGE_COUNT)
        text_format(summary, "\nFAILED at %s: %s.\nWhat to do: %s.\n", stage_name(first),
                    report->stages[first].reason.bytes, report->stages[first].remedy.bytes);
    else if (report_used_gpu(report)) text_add(summary, "\nPassed: these cuDNN libraries work on this GPU.\n");
    else text_add(summary, "\nPassed as far as is possible without a GPU: nothing was computed.\n");
}
