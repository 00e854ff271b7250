/* Which versions the loaded libraries say they are, and whether they say the same. */
#include "stages.h"

static const char *const CHECKS[] = {
    "OpsInfer", "OpsTrain", "CnnInfer", "CnnTrain", "AdvInfer", "AdvTrain", /* 8 */
    "Graph", "Ops", "Cnn", "Adv", "SubquadraticOps",                       /* 9 */
};

enum {
    VERSION_MISMATCH_8 = 14,
    VERSION_MISMATCH_9 = 1002,
    /* 9.28 answers this without a GPU although the library is there and right. */
    NOT_SUPPORTED = 3000,
    SUBLIBRARY_UNAVAILABLE = 3009,
};

static void add_fault(Stage *stage) {
    if (stage->status != FAILED) stage_failed(stage);
    if (stage->reason.size) text_add(&stage->reason, "; ");
}

static const char *meaning_of(int status) {
    switch (status) {
        case VERSION_MISMATCH_8:
        case VERSION_MISMATCH_9: return ", so libraries of two cuDNN versions were loaded together";
        case SUBLIBRARY_UNAVAILABLE: return ", so a library of the set is missing";
        default: return "";
    }
}

/* Checks that give the same answer share one sentence: those of a mixed set all say the same. */
static void run_version_checks(Check *check, Stage *stage, Text *faults) {
    STATIC_TEXT(name, 64);
    int last_status = 0;
    for (size_t at = 0; at < sizeof CHECKS / sizeof *CHECKS; at++) {
        text_clear(&name);
        text_format(&name, "cudnn%sVersionCheck", CHECKS[at]);
        int (*function)(void) = (int (*)(void))platform_symbol(check->cudnn, name.bytes);
        if (!function) continue;
        int status = function();
        json_open(&stage->facts, '{');
        json_member(&stage->facts, "function", name.bytes);
        json_number_member(&stage->facts, "status", (unsigned)status);
        json_close(&stage->facts, '}');
        if (status == 0 || status == NOT_SUPPORTED) continue;
        if (status == last_status) {
            text_format(faults, ", %s", name.bytes);
            continue;
        }
        text_format(faults, "%sstatus %d%s, from %s", faults->size ? "; " : "", status, meaning_of(status), name.bytes);
        last_status = status;
    }
}

typedef struct {
    Stage *stage;
    unsigned first[4];
    char first_name[128];
    int has_first;
    int disagrees;
} FileVersions;

static void list_file_version(void *context, const char *path, Library module) {
    FileVersions *versions = context;
    unsigned numbers[4];
    const char *name = path_name(path);
    if (!name_is_cudnn(name) || !platform_file_version(module, numbers)) return;
    STATIC_TEXT(spelt, 64);
    text_clear(&spelt);
    text_format(&spelt, "%d.%d.%d.%d", (int)numbers[0], (int)numbers[1], (int)numbers[2], (int)numbers[3]);
    json_open(&versions->stage->facts, '{');
    json_member(&versions->stage->facts, "name", name);
    json_member(&versions->stage->facts, "version", spelt.bytes);
    json_close(&versions->stage->facts, '}');
    if (!versions->has_first) {
        Text first = {versions->first_name, 0, sizeof versions->first_name, 0};
        text_format(&first, "%s is %s", name, spelt.bytes);
        for (int at = 0; at < 4; at++) versions->first[at] = numbers[at];
        versions->has_first = 1;
        return;
    }
    for (int at = 0; at < 4; at++) {
        if (numbers[at] == versions->first[at]) continue;
        add_fault(versions->stage);
        if (!versions->disagrees) text_format(&versions->stage->reason, "the files are of different versions: %s, ", versions->first_name);
        versions->disagrees = 1;
        text_format(&versions->stage->reason, "%s is %s", name, spelt.bytes);
        return;
    }
}

/* How cudnnGetVersion spells a version: CUDNN_VERSION in cudnn_version.h. */
static unsigned long long api_number(const unsigned numbers[4]) {
    return numbers[0] * (numbers[0] < 9 ? 1000ull : 10000ull) + numbers[1] * 100ull + numbers[2];
}

static void compare_api_number(Check *check, Stage *stage, const FileVersions *files) {
    unsigned long long said = check->cudnn_version;
    unsigned long long major = said >= 90000 ? said / 10000 : said / 1000;
    if (major != (unsigned)check->report->library_major) {
        add_fault(stage);
        text_format(&stage->reason, "%s says that it is version %u", library_name("", check->report->library_major), said);
    } else if (files->has_first && !files->disagrees && said != api_number(files->first)) {
        add_fault(stage);
        text_format(&stage->reason, "cudnnGetVersion says %u where %s", said, files->first_name);
    }
}

static unsigned long long ask_number(Check *check, const char *name) {
    size_t (*function)(void) = (size_t(*)(void))platform_symbol(check->cudnn, name);
    return function ? function() : 0;
}

void check_versions(Check *check) {
    STATIC_TEXT(check_faults, 2000);
    Stage *stage = &check->report->stages[VERSIONS];
    static FileVersions files;
    files = (FileVersions){.stage = stage};
    stage_passed(stage);
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    check->cudnn_version = ask_number(check, "cudnnGetVersion");
    check->cudart_version = ask_number(check, "cudnnGetCudartVersion");
    json_number_member(&stage->facts, "cudnnGetVersion", check->cudnn_version);
    json_number_member(&stage->facts, "cudnnGetCudartVersion", check->cudart_version);
    json_key(&stage->facts, "checks");
    json_open(&stage->facts, '[');
    run_version_checks(check, stage, &check_faults);
    json_close(&stage->facts, ']');
    json_key(&stage->facts, "file_versions");
    json_open(&stage->facts, '[');
    platform_each_module(list_file_version, &files);
    json_close(&stage->facts, ']');
    json_close(&stage->facts, '}');
    compare_api_number(check, stage, &files);
    if (check_faults.size) {
        add_fault(stage);
        text_add(&stage->reason, check_faults.bytes);
        name_absent(check, stage);
    }
    if (stage->status == FAILED)
        text_format(&stage->remedy, "replace every cuDNN library in %s by those of one archive, and keep other copies off %s", check->folder, SEARCH_PATH);
    judge_driver(check);
    judge_device(check, ask_number(check, "cudnnGetMaxDeviceVersion"));
}
