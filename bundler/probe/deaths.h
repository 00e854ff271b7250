/* What cuDNN wrote before it ended the process, and what that means. */
#ifndef DEATHS_H
#define DEATHS_H

#include "platform.h"
#include "report.h"

/* Whether a line that a library printed says why it gave up. */
int line_is_telling(const char *line);
/* Fail a stage in which the process ended, or whose reason the line makes clearer. */
void explain_line(Stage *stage, const char *line);
/* The seconds are those that the process was given. */
void explain_end(Stage *stage, const char *last_line, const ChildEnd *end, unsigned seconds);

#endif
