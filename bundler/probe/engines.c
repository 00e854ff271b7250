/* Two calls that open what the version checks leave unopened: the engines, and the handle. */
#include "stages.h"

enum {
    TENSOR_DESCRIPTOR = 17,
    BAD_PARAMETER = 2000,
    SUBLIBRARY_VERSION_MISMATCH = 1002,
    SUBLIBRARY_LOADING_FAILED = 1008,
    NOT_INITIALIZED_8 = 1,
    NOT_INITIALIZED_9 = 1001,
};

/* What an operation graph opens in every cuDNN 9; 9.28 does without some of them and says nothing. */
static const char *const ENGINES_9[] = {"engines_precompiled", "engines_runtime_compiled", "heuristic"};

typedef struct {
    const char *wanted;
    Text path;
} Search;

/* Linux files may bear the whole version: libcudnn_cnn.so.9.14.0 is a libcudnn_cnn.so.9. */
static void compare_name(void *context, const char *path, Library module) {
    Search *search = context;
    const char *name = path_name(path);
    (void)module;
    if (search->path.size || !text_begins_ignoring_case(name, search->wanted)) return;
    const char *rest = name + text_length(search->wanted);
    if (!*rest || *rest == '.') text_add(&search->path, path);
}

/* The file that was loaded under a name, by the loader's own word or by its file name; or an
 * empty string. */
static const char *loaded_path(const char *name) {
    static char path[LONGEST_PATH];
    path[0] = 0;
    if (platform_loaded(name, path, sizeof path)) return path;
    Search search = {name, {path, 0, sizeof path, 0}};
    platform_each_module(compare_name, &search);
    return path;
}

/* A tensor descriptor with nothing in it: finalising it is refused as a bad parameter, but only
 * after every engine library was opened, and no GPU is needed for that. */
static int finalize_empty_tensor(Check *check) {
    int (*create)(int, void **) = (int (*)(int, void **))platform_symbol(check->cudnn, "cudnnBackendCreateDescriptor");
    int (*finalize)(void *) = (int (*)(void *))platform_symbol(check->cudnn, "cudnnBackendFinalize");
    int (*destroy)(void *) = (int (*)(void *))platform_symbol(check->cudnn, "cudnnBackendDestroyDescriptor");
    void *descriptor = 0;
    if (!create || !finalize) return -1;
    int status = create(TENSOR_DESCRIPTOR, &descriptor);
    if (status != 0) return status;
    status = finalize(descriptor);
    if (destroy) destroy(descriptor);
    return status;
}

static void fail_engines(Check *check, Stage *stage, int status) {
    stage_failed(stage);
    if (status == SUBLIBRARY_VERSION_MISMATCH) {
        text_add(&stage->reason, "an engine library is of another cuDNN version");
    } else if (status == SUBLIBRARY_LOADING_FAILED || status == NOT_INITIALIZED_9) {
        text_format(&stage->reason, "an engine library cannot be loaded (cudnnBackendFinalize returned %d)", status);
    } else {
        text_format(&stage->reason, "cuDNN did not open its engine libraries (cudnnBackendFinalize returned %d)", status);
    }
    name_absent(check, stage);
    text_format(&stage->remedy, "replace every cuDNN library in %s by those of one archive", check->folder);
}

/* Each engine has to be in the process, and to be the one of this folder. */
static void find_unopened(Check *check, Stage *stage) {
    int absent = 0, foreign = 0;
    for (size_t at = 0; at < sizeof ENGINES_9 / sizeof *ENGINES_9; at++) {
        const char *name = library_name(ENGINES_9[at], check->report->library_major), *path = loaded_path(name);
        if (*path && path_is_inside(path, check->folder)) continue;
        if (stage->status != FAILED) stage_failed(stage);
        text_format(&stage->reason, "%s%s ", stage->reason.size ? ", " : "", name);
        if (*path) text_format(&stage->reason, "is %s instead of a file of %s", path, check->folder), foreign++;
        else text_add(&stage->reason, "was not loaded"), absent++;
    }
    if (absent) text_format(&stage->remedy, "copy the whole set of one archive into %s: without it convolutions are slow or refused", check->folder);
    else if (foreign) text_format(&stage->remedy, "keep one copy of cuDNN: take the other one off %s, or unload what loaded it first", SEARCH_PATH);
}

void check_engines(Check *check) {
    Stage *stage = &check->report->stages[ENGINES];
    if (check->report->library_major < 9) {
        stage_not_run(stage, "cuDNN 8 has no separate engine libraries");
        return;
    }
    int status = finalize_empty_tensor(check);
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    json_number_member(&stage->facts, "finalize_status", (unsigned)status);
    json_close(&stage->facts, '}');
    stage_passed(stage);
    if (status == BAD_PARAMETER) find_unopened(check, stage);
    else fail_engines(check, stage, status);
}

static void fail_create(Check *check, Stage *stage, int status) {
    const char *(*describe)(int) = (const char *(*)(int))platform_symbol(check->cudnn, "cudnnGetErrorString");
    stage_failed(stage);
    const char *words = describe ? describe(status) : "in no words";
    text_format(&stage->reason, "cudnnCreate returned %d, %s", status, words);
    text_add(&stage->remedy, remedy_of(words));
}

static void create_handle(Check *check, Stage *stage) {
    int (*create)(void **) = (int (*)(void **))platform_symbol(check->cudnn, "cudnnCreate");
    int status = create ? create(&check->handle) : -1;
    json_number_member(&stage->facts, "status", (unsigned)status);
    stage_passed(stage);
    if (!check->has_device) stage_not_run(stage, check->cuda ? "no NVIDIA GPU" : "no NVIDIA driver");
    else if (status != 0) fail_create(check, stage, status);
}

/* Without a GPU the call is made as well: it is harmless, and may open one library more. */
void check_create(Check *check) {
    Stage *stage = &check->report->stages[CREATE];
    if (report_first_failure(check->report) != STAGE_COUNT) {
        stage_not_run(stage, "an earlier stage failed");
        return;
    }
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    if (!check->has_device || open_needs(check, stage)) create_handle(check, stage);
    json_close(&stage->facts, '}');
}
