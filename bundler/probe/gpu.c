#include "gpu.h"

typedef void (*AnyFunction)(void);

const char *gpu_find(Gpu *gpu, Library driver) {
    static const char *const symbols[] = {
#define SYMBOL(member, symbol, parameters) symbol,
        GPU_FUNCTIONS(SYMBOL)};
    AnyFunction *members = (AnyFunction *)gpu;
    const char *missing = 0;
    for (size_t at = 0; at < sizeof symbols / sizeof *symbols; at++) {
        members[at] = (AnyFunction)platform_symbol(driver, symbols[at]);
        if (!members[at] && !missing) missing = symbols[at];
    }
    return missing;
}

const char *gpu_error_name(const Gpu *gpu, int error) {
    STATIC_TEXT(number, 40);
    const char *name = 0;
    if (gpu->error_name && gpu->error_name(error, &name) == GPU_SUCCESS && name) return name;
    text_clear(&number);
    text_format(&number, "CUDA error %d", error);
    return number.bytes;
}
