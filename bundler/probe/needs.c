/* What cuDNN opens by name while it runs: found and opened before it asks, because it ends the
 * process over one that is missing. The import package searches in the same order. */
#include "stages.h"

#if defined(_WIN32)
#define TOOLKIT_FOLDERS {"bin", "bin\\x86_64", "bin\\x64"}
#define WHEEL_FOLDERS {"cublas\\bin", "cuda_nvrtc\\bin", "cu%d\\bin", "cu%d\\bin\\x86_64"}
#define CONDA_FOLDER "Library\\bin"
#define NEED_FORM "%s64_%d.dll"
#define NVRTC_FORM "nvrtc64_%d%d_0.dll"
#define BUILTINS "nvrtc-builtins64_"
#else
#define TOOLKIT_FOLDERS {"lib", "lib64"}
#define WHEEL_FOLDERS {"cublas/lib", "cuda_nvrtc/lib", "cu%d/lib"}
#define CONDA_FOLDER "lib"
#define NEED_FORM "lib%s.so.%d"
#define NVRTC_FORM "libnvrtc.so.%d.%d"
#define BUILTINS "libnvrtc-builtins.so."
#endif

enum { HIGHEST_MINOR = 9, FIRST_WITH_ONE_NVRTC = 12 /* on Linux */ };

/* NVIDIA's own cuDNN wheel lies in their folder, a package that bundles cuDNN beside it. */
static const char *const WHEELS[] = {".." SEPARATOR "..", ".." SEPARATOR ".." SEPARATOR "nvidia"};

typedef struct {
    Check *check;
    Text *facts;      /* null: not recorded */
    const char *name; /* or a form of it, with the major and the minor version of CUDA as %d */
    const char *kind;
    int minors; /* the highest minor version to try, down to 0 */
} Need;

static int major_of(const Need *need) { return (int)(need->check->cudart_version / 1000); }

static const char *name_of(const Need *need, int minor) {
    STATIC_TEXT(name, 300);
    text_clear(&name);
    text_format(&name, need->name, major_of(need), minor);
    return name.bytes;
}

static void record(const Need *need, const char *name, const char *path, const char *origin) {
    if (!need->facts) return;
    json_open(need->facts, '{');
    json_member(need->facts, "name", name);
    json_member(need->facts, "kind", need->kind);
    json_member(need->facts, "path", path);
    json_member(need->facts, "origin", origin);
    json_close(need->facts, '}');
}

/* NVRTC opens its own companion by bare name from wherever it lies itself. */
static void open_builtins(void *context, const char *name) {
    STATIC_TEXT(path, LONGEST_PATH);
    if (!text_begins_ignoring_case(name, BUILTINS) || text_find(name, ".alt.")) return;
    text_clear(&path);
    text_format(&path, "%s%s%s", (const char *)context, SEPARATOR, name);
    platform_open_path(path.bytes);
}

static int try_folder(const Need *need, const char *folder, const char *origin) {
    STATIC_TEXT(path, LONGEST_PATH);
    for (int minor = need->minors; minor >= 0; minor--) {
        const char *name = name_of(need, minor);
        text_clear(&path);
        text_format(&path, "%s%s%s", folder, SEPARATOR, name);
        if (!platform_file_exists(path.bytes) || !platform_open_path(path.bytes)) continue;
        if (text_find(name, "nvrtc")) platform_each_file(folder, open_builtins, (void *)folder);
        record(need, name, path.bytes, origin);
        return 1;
    }
    return 0;
}

/* A folder below a root; both may hold a %d for the major version of CUDA. */
static int try_below(const Need *need, const char *root, const char *below, const char *origin) {
    STATIC_TEXT(folder, LONGEST_PATH);
    if (!*root) return 0;
    text_clear(&folder);
    text_add(&folder, root);
    text_add(&folder, SEPARATOR);
    text_format(&folder, below, major_of(need));
    return try_folder(need, folder.bytes, origin);
}

static int try_wheels(const Need *need) {
    static const char *const below[] = WHEEL_FOLDERS;
    STATIC_TEXT(root, LONGEST_PATH);
    for (size_t which = 0; which < sizeof WHEELS / sizeof *WHEELS; which++) {
        text_clear(&root);
        text_format(&root, "%s%s%s", need->check->folder, SEPARATOR, WHEELS[which]);
        for (size_t at = 0; at < sizeof below / sizeof *below; at++)
            if (try_below(need, root.bytes, below[at], "NVIDIA's wheels")) return 1;
    }
    return 0;
}

static int try_toolkit(const Need *need, const char *root, const char *origin) {
    static const char *const below[] = TOOLKIT_FOLDERS;
    for (size_t at = 0; at < sizeof below / sizeof *below; at++)
        if (try_below(need, root, below[at], origin)) return 1;
    return 0;
}

/* The toolkit that was chosen, then those of this major version, the newest first. */
static int try_toolkits(const Need *need) {
    STATIC_TEXT(text, LONGEST_PATH);
    text_clear(&text);
    text_add(&text, platform_variable("CUDA_PATH"));
    if (try_toolkit(need, text.bytes, "CUDA_PATH")) return 1;
    for (int minor = HIGHEST_MINOR; minor >= 0; minor--) {
        STATIC_TEXT(variable, 40);
        text_clear(&variable);
        text_format(&variable, "CUDA_PATH_V%d_%d", major_of(need), minor);
        text_clear(&text);
        text_add(&text, platform_variable(variable.bytes));
        if (try_toolkit(need, text.bytes, variable.bytes)) return 1;
    }
#if !defined(_WIN32)
    text_clear(&text);
    text_format(&text, "/usr/local/cuda-%d", major_of(need));
    if (try_toolkit(need, text.bytes, "the CUDA toolkit") || try_toolkit(need, "/usr/local/cuda", "the CUDA toolkit")) return 1;
#endif
    return 0;
}

static int try_conda(const Need *need) {
    STATIC_TEXT(prefix, LONGEST_PATH);
    text_clear(&prefix);
    text_add(&prefix, platform_variable("CONDA_PREFIX"));
    return try_below(need, prefix.bytes, CONDA_FOLDER, "the conda environment");
}

static int try_name(const Need *need, Library (*open)(const char *), const char *origin) {
    static char path[LONGEST_PATH];
    for (int minor = need->minors; minor >= 0; minor--) {
        const char *name = name_of(need, minor);
        if (open && !open(name)) continue;
        if (!platform_loaded(name, path, sizeof path)) continue;
        record(need, name, path, origin);
        return 1;
    }
    return 0;
}

/* What is loaded already, companions in the folder, NVIDIA's wheels beside it, the conda
 * environment, the CUDA toolkit, the system as any application would: in this order. */
static int open_need(const Need *need) {
    return try_name(need, 0, "already loaded") || try_folder(need, need->check->folder, "beside cuDNN") || try_wheels(need) ||
           try_conda(need) || try_toolkits(need) || try_name(need, platform_open, "the system");
}

/* Up to CUDA 11 NVRTC was named after the minor version, and cuDNN takes any; without it only
 * engines that are compiled at run time fail. */
static void open_nvrtc(Check *check, Stage *stage) {
    Need need = {check, &stage->facts, NVRTC_FORM, "optional", HIGHEST_MINOR};
#if !defined(_WIN32)
    if (major_of(&need) >= FIRST_WITH_ONE_NVRTC) need.name = "libnvrtc.so.%d", need.minors = 0;
#endif
    if (!open_need(&need)) record(&need, "NVRTC", "", "found nowhere");
}

/* cublasLt first: cublas imports it. cuDNN 9 opens cublasLt alone. */
int open_needs(Check *check, Stage *stage) {
    static const char *const families[] = {"cublasLt", "cublas"};
    int count = check->report->library_major < 9 ? 2 : 1, all_found = 1;
    STATIC_TEXT(name, 64);
    json_key(&stage->facts, "needs");
    json_open(&stage->facts, '[');
    for (int at = 0; at < count; at++) {
        text_clear(&name);
        text_format(&name, NEED_FORM, families[at], (int)(check->cudart_version / 1000));
        Need need = {check, &stage->facts, name.bytes, "required", 0};
        if (open_need(&need)) continue;
        if (all_found) stage_failed(stage);
        text_format(&stage->reason, "%s%s", all_found ? "cuDNN needs " : " and ", name.bytes);
        all_found = 0;
    }
    open_nvrtc(check, stage);
    json_close(&stage->facts, ']');
    if (all_found) return 1;
    text_format(&stage->reason, ", looked for in %s, in NVIDIA's wheels beside it, in CONDA_PREFIX, in CUDA_PATH and CUDA_PATH_V%u_*, and on %s",
                check->folder, check->cudart_version / 1000, SEARCH_PATH);
    text_format(&stage->remedy, "install cuBLAS for CUDA %u: as files beside the cuDNN libraries, as the wheel nvidia-cublas, or with the "
                "CUDA toolkit", check->cudart_version / 1000);
    return 0;
}

int open_need_named(Check *check, const char *name) {
    Need need = {check, 0, name, "required", 0};
    return open_need(&need);
}
