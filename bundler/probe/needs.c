/* What cuDNN opens by name while it runs: found and opened before it asks, because it ends the
 * process over one that is missing. */
#include "stages.h"

#if defined(_WIN32)
#define TOOLKIT_FOLDERS {"bin", "bin\\x64"}
#define WHEEL_FOLDERS {"..\\..\\cublas\\bin", "..\\..\\cu%d\\bin\\x86_64"}
#define NEED_FORM "%s64_%d.dll"
#else
#define TOOLKIT_FOLDERS {"lib64", "lib"}
#define WHEEL_FOLDERS {"../../cublas/lib", "../../cu%d/lib"}
#define NEED_FORM "lib%s.so.%d"
#endif

typedef struct {
    Check *check;
    Text *facts; /* null: not recorded */
    const char *name;
} Need;

static void record(const Need *need, const char *path, const char *origin) {
    if (!need->facts) return;
    json_open(need->facts, '{');
    json_member(need->facts, "name", need->name);
    json_member(need->facts, "path", path);
    json_member(need->facts, "origin", origin);
    json_close(need->facts, '}');
}

static int try_folder(const Need *need, const char *folder, const char *origin) {
    STATIC_TEXT(path, LONGEST_PATH);
    text_clear(&path);
    text_format(&path, "%s%s%s", folder, SEPARATOR, need->name);
    if (!platform_file_exists(path.bytes) || !platform_open_path(path.bytes)) return 0;
    record(need, path.bytes, origin);
    return 1;
}

static int try_below(const Need *need, const char *root, const char *below, const char *origin) {
    STATIC_TEXT(folder, LONGEST_PATH);
    if (!*root) return 0;
    text_clear(&folder);
    text_format(&folder, "%s%s", root, SEPARATOR);
    text_format(&folder, below, (int)(need->check->cudart_version / 1000));
    return try_folder(need, folder.bytes, origin);
}

/* Companions in the folder, NVIDIA's wheels beside it, the CUDA toolkit, the system as any
 * application would: in this order. */
static int open_need(const Need *need) {
    static const char *const wheels[] = WHEEL_FOLDERS, *const toolkit[] = TOOLKIT_FOLDERS;
    if (try_folder(need, need->check->folder, "beside cuDNN")) return 1;
    for (size_t at = 0; at < sizeof wheels / sizeof *wheels; at++)
        if (try_below(need, need->check->folder, wheels[at], "NVIDIA's wheels")) return 1;
    for (size_t at = 0; at < sizeof toolkit / sizeof *toolkit; at++) {
        if (try_below(need, platform_variable("CUDA_PATH"), toolkit[at], "CUDA_PATH")) return 1;
#if !defined(_WIN32)
        if (try_below(need, "/usr/local/cuda", toolkit[at], "the CUDA toolkit")) return 1;
#endif
    }
    if (!platform_open(need->name)) return 0;
    record(need, need->name, "the system");
    return 1;
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
        Need need = {check, &stage->facts, name.bytes};
        if (open_need(&need)) continue;
        if (all_found) stage_failed(stage);
        text_format(&stage->reason, "%s%s", all_found ? "cuDNN needs " : " and ", name.bytes);
        all_found = 0;
    }
    json_close(&stage->facts, ']');
    if (all_found) return 1;
    text_format(&stage->reason, ", looked for in %s, in NVIDIA's wheels beside it, on %s and in CUDA_PATH", check->folder, SEARCH_PATH);
    text_format(&stage->remedy, "install cuBLAS for CUDA %u: as files beside the cuDNN libraries, as the wheel nvidia-cublas, or with the "
                "CUDA toolkit", check->cudart_version / 1000);
    return 0;
}

int open_need_named(Check *check, const char *name) {
    Need need = {check, 0, name};
    return open_need(&need);
}
