/* The NVIDIA driver and the first GPU that it shows. */
#include "stages.h"

enum {
    CUDA_NO_DEVICE = 100,
    CUDA_DRIVER_TOO_OLD = 35,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    ATTRIBUTE_COMPUTE_MAJOR = 75,
    ATTRIBUTE_COMPUTE_MINOR = 76,
};

#if defined(_WIN32)
#define NO_DRIVER "no NVIDIA driver (nvcuda.dll is not in the system's folder)"
#else
#define NO_DRIVER "no NVIDIA driver (libcuda.so.1 was not found)"
#endif

static int call_init(Check *check) {
    int (*init)(unsigned) = (int (*)(unsigned))platform_symbol(check->cuda, "cuInit");
    return init ? init(0) : -1;
}

void check_driver(Check *check) {
    Stage *stage = &check->report->stages[DRIVER];
    check->cuda = platform_open_driver();
    if (!check->cuda) {
        stage_not_run(stage, NO_DRIVER);
        return;
    }
    int (*version)(int *) = (int (*)(int *))platform_symbol(check->cuda, "cuDriverGetVersion");
    if (!version || version(&check->cuda_version) != 0) {
        stage_failed(stage);
        text_add(&stage->reason, "the NVIDIA driver does not tell its version");
        text_add(&stage->remedy, "install the driver again and restart the machine");
        return;
    }
    stage_passed(stage);
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    json_number_member(&stage->facts, "version", (unsigned)check->cuda_version);
    STATIC_TEXT(cuda, 24);
    text_clear(&cuda);
    text_format(&cuda, "%d.%d", check->cuda_version / 1000, check->cuda_version % 1000 / 10);
    json_member(&stage->facts, "supports_cuda", cuda.bytes);
    json_close(&stage->facts, '}');
}

static void describe_device(Check *check, int device, Text *facts) {
    int (*name)(char *, int, int) = (int (*)(char *, int, int))platform_symbol(check->cuda, "cuDeviceGetName");
    int (*attribute)(int *, int, int) = (int (*)(int *, int, int))platform_symbol(check->cuda, "cuDeviceGetAttribute");
    int (*memory)(size_t *, int) = (int (*)(size_t *, int))platform_symbol(check->cuda, "cuDeviceTotalMem_v2");
    char text[256] = "";
    int major = 0, minor = 0;
    size_t bytes = 0;
    if (name) name(text, sizeof text, device);
    if (attribute) attribute(&major, ATTRIBUTE_COMPUTE_MAJOR, device);
    if (attribute) attribute(&minor, ATTRIBUTE_COMPUTE_MINOR, device);
    if (memory) memory(&bytes, device);
    STATIC_TEXT(capability, 24);
    text_clear(&capability);
    text_format(&capability, "%d.%d", major, minor);
    json_member(facts, "name", text);
    json_member(facts, "compute_capability", capability.bytes);
    json_number_member(facts, "memory_bytes", bytes);
}

static void fail_init(Stage *stage, int status) {
    stage_failed(stage);
    text_format(&stage->reason, "the NVIDIA driver does not start (cuInit returned %d)", status);
    if (status == CUDA_SYSTEM_DRIVER_MISMATCH)
        text_add(&stage->remedy, "parts of two driver versions are installed: restart, or install the driver again");
    else if (status == CUDA_DRIVER_TOO_OLD) text_add(&stage->remedy, "install a newer NVIDIA driver");
    else text_add(&stage->remedy, "run nvidia-smi; if it fails as well, install the driver again and restart");
}

void check_device(Check *check) {
    Stage *stage = &check->report->stages[DEVICE];
    if (!check->cuda) {
        stage_not_run(stage, NO_DRIVER);
        return;
    }
    int status = call_init(check), count = 0;
    int (*count_devices)(int *) = (int (*)(int *))platform_symbol(check->cuda, "cuDeviceGetCount");
    int (*get)(int *, int) = (int (*)(int *, int))platform_symbol(check->cuda, "cuDeviceGet");
    if (status != 0 && status != CUDA_NO_DEVICE) {
        fail_init(stage, status);
        return;
    }
    if (status == 0 && count_devices) status = count_devices(&count);
    int device = 0;
    if (status != 0 || count == 0 || !get || get(&device, 0) != 0) {
        stage_not_run(stage, "no NVIDIA GPU is visible to this process (CUDA_VISIBLE_DEVICES may hide it)");
        return;
    }
    check->has_device = 1;
    stage_passed(stage);
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    describe_device(check, device, &stage->facts);
    json_number_member(&stage->facts, "count", (unsigned)count);
    json_close(&stage->facts, '}');
}
