/* Opening cuDNN, and where every module of its family was loaded from. */
#include "stages.h"

static const int MAJORS[] = {9, 8};
static const char *const FAMILIES[] = {"cudnn", "cublas", "nvrtc", "zlib", "libcudnn", "libcublas", "libnvrtc", "libz."};

static int is_of_family(const char *name) {
    for (size_t at = 0; at < sizeof FAMILIES / sizeof *FAMILIES; at++)
        if (text_begins_ignoring_case(name, FAMILIES[at])) return 1;
    return 0;
}

static const char *join(const char *folder, const char *name) {
    STATIC_TEXT(path, LONGEST_PATH);
    text_clear(&path);
    text_format(&path, "%s%s%s", folder, SEPARATOR, name);
    return path.bytes;
}

/* The major version whose main library lies in the folder, or 0. */
static int major_in(const char *folder) {
    for (size_t at = 0; at < sizeof MAJORS / sizeof *MAJORS; at++)
        if (platform_file_exists(join(folder, library_name("", MAJORS[at])))) return MAJORS[at];
    return 0;
}

/* On Linux some cuDNN libraries import cuBLAS, which the loader looks for in too few places: what
 * its error names is found as any other need is, and the opening tried once more. */
static int open_with_imports(Check *check, const char *path) {
    enum { MOST_IMPORTS = 4 };
    static char missing[300];
    for (int at = 0; at < MOST_IMPORTS; at++) {
        if (platform_open_path(path)) return 1;
        const char *error = platform_open_error(), *end = text_find(error, ": cannot open shared object file");
        Text name = {missing, 0, sizeof missing, 0};
        text_clear(&name);
        if (end) text_add_bytes(&name, error, (size_t)(end - error));
        if (!end || name_is_cudnn(missing) || !open_need_named(check, missing)) break;
    }
    return platform_open_path(path) != 0;
}

typedef struct {
    Check *check;
    Text *faults;
    Text *consequences; /* not found, itself or an import of it: seldom the cause when there are faults */
} Preload;

static void preload_one(void *context, const char *name) {
    Preload *preload = context;
#if defined(_WIN32)
    int is_library = text_ends(name, ".dll");
#else
    int is_library = text_find(name, ".so") != 0;
#endif
    if (!name_is_cudnn(name) || !is_library) return;
    STATIC_TEXT(path, LONGEST_PATH);
    text_clear(&path);
    text_add(&path, join(preload->check->folder, name));
    if (open_with_imports(preload->check, path.bytes)) return;
    const char *error = platform_open_error();
    Text *to = text_begins(error, "error 126") ? preload->consequences : preload->faults;
    text_format(to, "%s%s cannot be loaded (%s)", to->size ? "; " : "", name, error);
}

void name_absent(Check *check, Stage *stage) {
    static const char *const parts[][8] = {
        {"ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train", 0},
        {"graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic", 0},
    };
    int major = check->report->library_major;
    for (int at = 0; major && parts[major >= 9][at]; at++) {
        const char *name = library_name(parts[major >= 9][at], major);
        if (!platform_file_exists(join(check->folder, name))) text_format(&stage->reason, "; %s is not in %s", name, check->folder);
    }
}

static int preload_all(Check *check, Stage *stage) {
    STATIC_TEXT(faults, 3000);
    STATIC_TEXT(consequences, 3000);
    text_clear(&faults);
    text_clear(&consequences);
    Preload preload = {check, &faults, &consequences};
    platform_each_file(check->folder, preload_one, &preload);
    if (!faults.size && !consequences.size) return 1;
    check->report->library_major = major_in(check->folder);
    stage_failed(stage);
    text_add(&stage->reason, faults.size ? faults.bytes : consequences.bytes);
    name_absent(check, stage);
    text_add(&stage->remedy, "compare these files with their published SHA-256 and copy the whole set again");
    return 0;
}

static void open_main(Check *check) {
    int beside = major_in(check->folder);
    /* Loaded already; the name alone would find what lies beside this program first. */
    if (beside && check->options->library_folder) check->cudnn = platform_open_path(join(check->folder, library_name("", beside)));
    if (check->cudnn) check->report->library_major = beside;
    for (size_t at = 0; !check->cudnn && at < sizeof MAJORS / sizeof *MAJORS; at++) {
        if (beside && MAJORS[at] != beside) continue;
        check->cudnn = platform_open(library_name("", MAJORS[at]));
        if (check->cudnn) check->report->library_major = MAJORS[at];
    }
    if (beside) check->report->library_major = beside;
}

static void fail_open(Check *check, Stage *stage) {
    const char *error = platform_open_error();
    int beside = check->report->library_major;
    stage_failed(stage);
    if (beside) {
        text_format(&stage->reason, "%s lies in %s and cannot be loaded (%s)", library_name("", beside), check->folder, error);
        text_add(&stage->remedy, "compare the file with its published SHA-256 and copy it again");
        return;
    }
    text_format(&stage->reason, "neither %s", library_name("", 9));
    text_format(&stage->reason, " nor %s was found in %s or on %s", library_name("", 8), check->folder, SEARCH_PATH);
    text_format(&stage->remedy, "put this program into the folder that holds the cuDNN libraries (not above it: a folder "
                "copied into itself, such as bin%sbin, is a common slip); if they were there before, look into the "
                "antivirus program's quarantine", SEPARATOR);
}

void check_library(Check *check) {
    Stage *stage = &check->report->stages[LIBRARY];
    if (check->options->library_folder && !preload_all(check, stage)) return;
    open_main(check);
    if (check->cudnn) check_modules(check);
    else fail_open(check, stage);
}

typedef struct {
    Check *check;
    Text *facts;
    Text *first_outside;
    unsigned outside; /* how many */
} Listing;

static void list_module(void *context, const char *path, Library module) {
    Listing *listing = context;
    const char *name = path_name(path);
    (void)module;
    if (!is_of_family(name) || text_begins_ignoring_case(name, "cudnn-check")) return;
    int is_inside = path_is_inside(path, listing->check->folder);
    json_open(listing->facts, '{');
    json_member(listing->facts, "name", name);
    json_member(listing->facts, "path", path);
    json_key(listing->facts, "inside");
    json_boolean(listing->facts, is_inside);
    json_close(listing->facts, '}');
    if (is_inside || !name_is_cudnn(name)) return;
    if (!listing->outside++) text_add(listing->first_outside, path);
}

void check_modules(Check *check) {
    STATIC_TEXT(first_outside, LONGEST_PATH);
    Stage *stage = &check->report->stages[LIBRARY];
    Listing listing = {check, &stage->facts, &first_outside, 0};
    text_clear(&first_outside);
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    json_member(&stage->facts, "folder", check->folder);
    json_key(&stage->facts, "modules");
    json_open(&stage->facts, '[');
    platform_each_module(list_module, &listing);
    json_close(&stage->facts, ']');
    json_close(&stage->facts, '}');
    if (!listing.outside) {
        stage_passed(stage);
        return;
    }
    stage_failed(stage);
    text_format(&stage->reason, "the process loaded %s", first_outside.bytes);
    if (listing.outside > 1) text_format(&stage->reason, " (and %u more from elsewhere)", (unsigned long long)listing.outside - 1);
    text_format(&stage->reason, " instead of a file of %s", check->folder);
    text_format(&stage->remedy, "keep one copy of cuDNN: take the other folder off %s, or put the whole set into %s (a copy "
                "by hand beside one of conda or pip makes such a mixture)", SEARCH_PATH, check->folder);
}
