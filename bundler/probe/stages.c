#include "stages.h"

void stage_passed(Stage *stage) {
    stage->status = PASSED;
    text_clear(&stage->reason);
    text_clear(&stage->remedy);
}

void stage_not_run(Stage *stage, const char *reason) {
    stage->status = NOT_RUN;
    text_clear(&stage->reason);
    text_clear(&stage->remedy);
    text_add(&stage->reason, reason);
}

void stage_failed(Stage *stage) {
    stage->status = FAILED;
    text_clear(&stage->reason);
    text_clear(&stage->remedy);
}

/* The names hold for versions 8 and 9, whose numbers differ. */
const char *remedy_of(const char *status_words) {
    static const struct { const char *word, *remedy; } TABLE[] = {
        {"ALLOC", "close other programs that use the GPU: its memory is full"},
        {"ARCH", "this cuDNN has no code for this GPU: use the release that was made for it"},
        {"SUBLIBRARY_LOADING", "a library of the set is missing: copy the whole set of one archive"},
        {"MISMATCH", "replace every cuDNN library by those of one archive"},
        {"NOT_INITIALIZED", "look for another copy of cuDNN that was loaded first (see the library stage), for a driver too old "
                            "for it, and for a GPU whose memory is full"},
    };
    for (size_t at = 0; at < sizeof TABLE / sizeof *TABLE; at++)
        if (text_find(status_words, TABLE[at].word)) return TABLE[at].remedy;
    return "run the check once more with --log FILE, and read what cuDNN did last";
}

const char *path_name(const char *path) {
    const char *name = path;
    for (; *path; path++)
        if (*path == '/' || *path == SEPARATOR[0]) name = path + 1;
    return name;
}

int name_is_cudnn(const char *name) {
    return text_begins_ignoring_case(name, CUDNN_PREFIX) && !text_begins_ignoring_case(name, "cudnn-check");
}

int path_is_inside(const char *path, const char *folder) {
#if defined(_WIN32)
    int begins = text_begins_ignoring_case(path, folder);
#else
    int begins = text_begins(path, folder);
#endif
    size_t size = text_length(folder);
    return begins && (path[size] == SEPARATOR[0] || (size && folder[size - 1] == SEPARATOR[0]));
}

const char *library_name(const char *part, int major) {
    STATIC_TEXT(name, 100);
    text_clear(&name);
    text_format(&name, "%s%s%s", CUDNN_PREFIX, *part ? "_" : "", part);
#if defined(_WIN32)
    text_format(&name, "64_%d.dll", major);
#else
    text_format(&name, ".so.%d", major);
#endif
    return name.bytes;
}

static void run(Check *check, const Listener *listener, StageId id, void (*stage)(Check *)) {
    listener->begins(id);
    stage(check);
    listener->ended(id, &check->report->stages[id]);
}

/* Every stage may have loaded more modules, so what is said of them is said again; what has
 * been told already stands when the next stage ends the process. */
static void run_and_look(Check *check, const Listener *listener, StageId id, void (*stage)(Check *)) {
    run(check, listener, id, stage);
    check_modules(check);
    listener->ended(LIBRARY, &check->report->stages[LIBRARY]);
}

void stages_run(const Options *options, Report *report, const Listener *listener) {
    Check check = {.options = options, .report = report};
    check.folder = options->library_folder ? options->library_folder
                 : options->expected_folder ? options->expected_folder : platform_own_folder();
    run(&check, listener, DRIVER, check_driver);
    run(&check, listener, DEVICE, check_device);
    run(&check, listener, LIBRARY, check_library);
    if (report->library_major) listener->major_known(report->library_major);
    if (!check.cudnn) {
        for (int id = VERSIONS; id < STAGE_COUNT; id++) {
            stage_not_run(&report->stages[id], "cuDNN's main library was not opened");
            listener->ended((StageId)id, &report->stages[id]);
        }
        return;
    }
    run_and_look(&check, listener, VERSIONS, check_versions);
    /* Both are judged again once the library has said what it was made for. */
    listener->ended(DRIVER, &report->stages[DRIVER]);
    listener->ended(DEVICE, &report->stages[DEVICE]);
    run_and_look(&check, listener, ENGINES, check_engines);
    run_and_look(&check, listener, CREATE, check_create);
    run_and_look(&check, listener, CONVOLUTION, check_convolution);
    run_and_look(&check, listener, BENCHMARK, check_benchmark);
}
