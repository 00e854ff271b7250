/* The NVIDIA driver and the first GPU that it shows. */
#include "stages.h"

enum {
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

void check_driver(Check *check) {
    Stage *stage = &check->report->stages[DRIVER];
    check->cuda = platform_open_driver();
    if (!check->cuda) {
        stage_not_run(stage, NO_DRIVER);
        return;
    }
    const char *missing = gpu_find(&check->gpu, check->cuda);
    if (missing) {
        stage_failed(stage);
        text_format(&stage->reason, "the NVIDIA driver does not offer %s", missing);
        text_add(&stage->remedy, "install a newer NVIDIA driver");
        return;
    }
    if (check->gpu.driver_version(&check->cuda_version) != GPU_SUCCESS) {
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
    char name[256] = "";
    int major = 0, minor = 0;
    size_t bytes = 0;
    check->gpu.device_name(name, sizeof name, device);
    check->gpu.device_attribute(&major, ATTRIBUTE_COMPUTE_MAJOR, device);
    check->gpu.device_attribute(&minor, ATTRIBUTE_COMPUTE_MINOR, device);
    check->gpu.device_memory(&bytes, device);
    check->compute_capability = major * 10 + minor;
    STATIC_TEXT(capability, 24);
    text_clear(&capability);
    text_format(&capability, "%d.%d", major, minor);
    json_member(facts, "name", name);
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

/* cuDNN works in the device's primary context, so the check does too. */
static int use_device(Check *check, Stage *stage, int device) {
    GpuObject context = 0;
    int error = check->gpu.context_retain(&context, device);
    if (error == GPU_SUCCESS) error = check->gpu.context_use(context);
    if (error == GPU_SUCCESS) return 1;
    stage_failed(stage);
    text_format(&stage->reason, "the GPU cannot be used: %s", gpu_error_name(&check->gpu, error));
    text_add(&stage->remedy, error == GPU_OUT_OF_MEMORY ? "close other programs that use the GPU: its memory is full"
                                                        : "run nvidia-smi: another program may hold the GPU for itself");
    return 0;
}

void check_device(Check *check) {
    Stage *stage = &check->report->stages[DEVICE];
    if (!check->cuda || check->report->stages[DRIVER].status != PASSED) {
        stage_not_run(stage, check->cuda ? "the driver is not usable" : NO_DRIVER);
        return;
    }
    int status = check->gpu.init(0), count = 0, device = 0;
    if (status != GPU_SUCCESS && status != GPU_NO_DEVICE) {
        fail_init(stage, status);
        return;
    }
    if (status == GPU_SUCCESS) status = check->gpu.device_count(&count);
    if (status != GPU_SUCCESS || count == 0 || check->gpu.device_get(&device, 0) != GPU_SUCCESS) {
        stage_not_run(stage, "no NVIDIA GPU is visible to this process (CUDA_VISIBLE_DEVICES may hide it)");
        return;
    }
    stage_passed(stage);
    text_clear(&stage->facts);
    json_open(&stage->facts, '{');
    describe_device(check, device, &stage->facts);
    json_number_member(&stage->facts, "count", (unsigned)count);
    json_close(&stage->facts, '}');
    check->has_device = use_device(check, stage, device);
}
