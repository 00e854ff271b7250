/* cudnn-check: the caller's process asks, a child of it does the work, because cuDNN ends the
 * process that it is in when a library is missing. The child tells of every stage in a line that
 * begins with a mark; every other line is what the libraries print. */
#include "cudnn_check.h"

#include "deaths.h"
#include "stages.h"

#define MARK "cudnn-check> "
#define CHILD_FLAG "--as-child"

enum { DEFAULT_SECONDS = 600, LONGEST_SECONDS = 86400 };
enum { EXIT_PASSED = 0, EXIT_USAGE = 2, EXIT_FAILED = 5, EXIT_NO_GPU = 6 };

typedef struct {
    Options stages;
    const char *log_file;
    unsigned seconds; /* that the child may take */
    int requires_gpu;
    int wants_text; /* the summary on standard output, no JSON */
    int wants_json; /* JSON alone */
    int wants_help;
    int is_child;
} Arguments;

static const char USAGE[] =
    "cudnn-check [--text] [--json] [--library-dir DIR | --expect-dir DIR]\n"
    "            [--require-gpu] [--log FILE] [--timeout SECONDS] [--spoil]\n"
    "  Says whether the cuDNN libraries beside it work: JSON on standard output, a summary on\n"
    "  standard error.\n"
    "  --text             the summary alone, on standard output\n"
    "  --json             the JSON alone\n"
    "  --library-dir DIR  check the libraries of DIR, each loaded by its full path\n"
    "  --expect-dir DIR   open cuDNN by name, as a program elsewhere does; it must come from DIR\n"
    "  --require-gpu      a machine without a GPU or driver is a failure (exit code 6)\n"
    "  --log FILE         let cuDNN write its own log to FILE\n"
    "  --timeout SECONDS  how long the whole check may take (600); the stage that runs then fails\n"
    "  --spoil            make one expected value wrong, to see the check fail\n"
    "  Exit code: 0 passed, 5 failed, 6 no GPU where one is required, 2 wrong usage.\n";

/* A whole number of seconds, or 0 for what is none. */
static unsigned seconds_of(const char *word) {
    unsigned seconds = 0;
    for (; *word; word++) {
        if (*word < '0' || *word > '9' || seconds > LONGEST_SECONDS) return 0;
        seconds = seconds * 10 + (unsigned)(*word - '0');
    }
    return seconds <= LONGEST_SECONDS ? seconds : 0;
}

static int parse(int count, char **words, Arguments *arguments) {
    static char folder[LONGEST_PATH], expected[LONGEST_PATH];
    for (int at = 1; at < count; at++) {
        const char *word = words[at];
        if (text_same(word, "--text")) arguments->wants_text = 1;
        else if (text_same(word, "--json")) arguments->wants_json = 1;
        else if (text_same(word, "--require-gpu")) arguments->requires_gpu = 1;
        else if (text_same(word, "--help")) arguments->wants_help = 1;
        else if (text_same(word, "--spoil")) arguments->stages.spoils = 1;
        else if (text_same(word, CHILD_FLAG)) arguments->is_child = 1;
        else if (text_same(word, "--timeout") && at + 1 < count) arguments->seconds = seconds_of(words[++at]);
        else if (text_same(word, "--log") && at + 1 < count) arguments->log_file = words[++at];
        else if (text_same(word, "--library-dir") && at + 1 < count) {
            platform_make_absolute(words[++at], folder, sizeof folder);
            arguments->stages.library_folder = folder;
        } else if (text_same(word, "--expect-dir") && at + 1 < count) {
            platform_make_absolute(words[++at], expected, sizeof expected);
            arguments->stages.expected_folder = expected;
        } else return 0;
    }
    return arguments->seconds && !(arguments->wants_text && arguments->wants_json);
}

/* The child's side. */

static Text *line_to_tell(void) {
    STATIC_TEXT(line, 128 * 1024);
    text_clear(&line);
    text_add(&line, "\n" MARK);
    return &line;
}

static void tell(Text *line) {
    text_add(line, "\n");
    platform_write(STANDARD_OUTPUT, line->bytes, line->size);
}

static void add_column(Text *line, const char *words) {
    text_add(line, "\t");
    for (; *words; words++) {
        char letter = (unsigned char)*words < ' ' ? ' ' : *words;
        text_add_bytes(line, &letter, 1);
    }
}

static void tell_begin(StageId id) {
    Text *line = line_to_tell();
    text_add(line, "begin");
    add_column(line, stage_name(id));
    tell(line);
}

static void tell_stage(StageId id, const Stage *stage) {
    Text *line = line_to_tell();
    text_add(line, "stage");
    add_column(line, stage_name(id));
    add_column(line, status_name(stage->status));
    add_column(line, stage->reason.bytes);
    add_column(line, stage->remedy.bytes);
    add_column(line, stage->facts.is_cut ? "{}" : stage->facts.bytes);
    tell(line);
}

static void tell_major(int major) {
    Text *line = line_to_tell();
    text_format(line, "major\t%d", major);
    tell(line);
}

static int run_child(const Arguments *arguments) {
    static const Listener listener = {tell_begin, tell_stage, tell_major};
    platform_fail_silently();
    stages_run(&arguments->stages, report_new(), &listener);
    Text *line = line_to_tell();
    text_add(line, "done");
    tell(line);
    return 0;
}

/* The parent's side. */

typedef struct {
    Report *report;
    Text line;
    Text last_line;    /* the last that a library printed */
    Text telling_line; /* the last that says why it gave up */
    int running;       /* the stage that has begun and not ended, or STAGE_COUNT */
    int is_done;
    unsigned seconds;
} Hearing;

/* Cut the text at the next tab; return what follows. */
static char *next_column(char *at, char **column) {
    *column = at;
    while (*at && *at != '\t') at++;
    if (*at) *at++ = 0;
    return at;
}

static void hear_stage(Hearing *hearing, char *at) {
    char *name, *status, *reason, *remedy, *facts;
    at = next_column(at, &name);
    at = next_column(at, &status);
    at = next_column(at, &reason);
    at = next_column(at, &remedy);
    next_column(at, &facts);
    StageId id = stage_of_name(name);
    if (id == STAGE_COUNT) return;
    Stage *stage = &hearing->report->stages[id];
    stage->status = text_same(status, "passed") ? PASSED : text_same(status, "failed") ? FAILED : NOT_RUN;
    text_clear(&stage->reason);
    text_clear(&stage->remedy);
    text_clear(&stage->facts);
    text_add(&stage->reason, reason);
    text_add(&stage->remedy, remedy);
    text_add(&stage->facts, facts);
    if (hearing->running == (int)id) hearing->running = STAGE_COUNT;
}

static void hear_message(Hearing *hearing, char *at) {
    char *kind, *value;
    at = next_column(at, &kind);
    if (text_same(kind, "stage")) {
        hear_stage(hearing, at);
    } else if (text_same(kind, "begin")) {
        next_column(at, &value);
        hearing->running = stage_of_name(value);
    } else if (text_same(kind, "major")) {
        hearing->report->library_major = *at - '0';
    } else if (text_same(kind, "done")) {
        hearing->is_done = 1;
    }
}

static void hear_line(Hearing *hearing) {
    char *line = hearing->line.bytes;
    if (text_begins(line, MARK)) {
        hear_message(hearing, line + text_length(MARK));
    } else if (*line) {
        Text *kept = line_is_telling(line) ? &hearing->telling_line : &hearing->last_line;
        text_clear(kept);
        text_add(kept, line);
    }
    text_clear(&hearing->line);
}

static void hear_bytes(void *context, const char *bytes, size_t size) {
    Hearing *hearing = context;
    for (size_t at = 0; at < size; at++) {
        if (bytes[at] == '\n') hear_line(hearing);
        else if (bytes[at] != '\r') text_add_bytes(&hearing->line, bytes + at, 1);
    }
}

/* The stage that was running has failed, and what comes after it was not reached. */
static void conclude_early(Hearing *hearing, const ChildEnd *end) {
    int id = hearing->running;
    for (int at = 0; id == STAGE_COUNT && at < STAGE_COUNT; at++)
        if (hearing->report->stages[at].status == NOT_RUN && text_same(hearing->report->stages[at].reason.bytes, "not reached")) id = at;
    if (id == STAGE_COUNT) id = BENCHMARK;
    const char *line = hearing->telling_line.size ? hearing->telling_line.bytes : hearing->last_line.bytes;
    explain_end(&hearing->report->stages[id], line, end, hearing->seconds);
    for (int at = id + 1; at < STAGE_COUNT; at++)
        if (at != LIBRARY) stage_not_run(&hearing->report->stages[at], "the process ended before this stage");
}

static void conclude(Hearing *hearing, const ChildEnd *end) {
    Stage *engines = &hearing->report->stages[ENGINES];
    if (!end->is_started) {
        Stage *stage = &hearing->report->stages[LIBRARY];
        stage_failed(stage);
        text_add(&stage->reason, "this program could not start itself again");
        text_add(&stage->remedy, "check that nothing blocks it: an antivirus program, or the rights on its file");
    } else if (!hearing->is_done) {
        conclude_early(hearing, end);
    } else if (engines->status == FAILED && hearing->telling_line.size) {
        /* cuDNN 9 names the engine library that is missing on its error stream alone. */
        explain_line(engines, hearing->telling_line.bytes);
    }
}

static Report *ask_child(char **words, unsigned seconds) {
    STATIC_TEXT(line, 160 * 1024);
    STATIC_TEXT(last_line, 1024);
    STATIC_TEXT(telling_line, 1024);
    static Hearing hearing;
    hearing = (Hearing){report_new(), line, last_line, telling_line, STAGE_COUNT, 0, seconds};
    ChildEnd end = platform_run_again(CHILD_FLAG, words, seconds, hear_bytes, &hearing);
    hear_line(&hearing);
    conclude(&hearing, &end);
    return hearing.report;
}

static void print(const Report *report, const Arguments *arguments) {
    STATIC_TEXT(document, 1024 * 1024);
    STATIC_TEXT(summary, 96 * 1024);
    report_write_json(report, &document);
    report_write_summary(report, &summary);
    if (arguments->wants_text) {
        platform_write(STANDARD_OUTPUT, summary.bytes, summary.size);
        return;
    }
    platform_write(STANDARD_OUTPUT, document.bytes, document.size);
    if (!arguments->wants_json) platform_write(STANDARD_ERROR, summary.bytes, summary.size);
}

static void set_log(const char *file) {
    static char absolute[LONGEST_PATH];
    platform_make_absolute(file, absolute, sizeof absolute);
    platform_set_variable("CUDNN_LOGINFO_DBG", "1");  /* cuDNN 8 */
    platform_set_variable("CUDNN_LOGLEVEL_DBG", "3"); /* cuDNN 9 */
    platform_set_variable("CUDNN_LOGDEST_DBG", absolute);
}

int cudnn_check_main(int count, char **words) {
    Arguments arguments = {.seconds = DEFAULT_SECONDS};
    if (!parse(count, words, &arguments)) {
        platform_write(STANDARD_ERROR, USAGE, sizeof USAGE - 1);
        return EXIT_USAGE;
    }
    if (arguments.wants_help) {
        platform_write(STANDARD_OUTPUT, USAGE, sizeof USAGE - 1);
        return EXIT_PASSED;
    }
    if (arguments.is_child) return run_child(&arguments);
    if (arguments.log_file) set_log(arguments.log_file);
    const Report *report = ask_child(words, arguments.seconds);
    print(report, &arguments);
    if (report_first_failure(report) != STAGE_COUNT) return EXIT_FAILED;
    return arguments.requires_gpu && !report_used_gpu(report) ? EXIT_NO_GPU : EXIT_PASSED;
}
