/* The NVIDIA driver's functions that the check calls, found at run time.
 * Source of the signatures: the CUDA driver API reference. */
#ifndef GPU_H
#define GPU_H

#include "platform.h"
#include "text.h"

typedef unsigned long long DeviceMemory;
typedef void *GpuObject; /* a context, module, function, stream or event */

enum { GPU_SUCCESS = 0, GPU_OUT_OF_MEMORY = 2, GPU_NO_DEVICE = 100 };

#define GPU_FUNCTIONS(FUNCTION)                                                                      \
    FUNCTION(init, "cuInit", (unsigned flags))                                                       \
    FUNCTION(driver_version, "cuDriverGetVersion", (int *version))                                   \
    FUNCTION(device_count, "cuDeviceGetCount", (int *count))                                         \
    FUNCTION(device_get, "cuDeviceGet", (int *device, int ordinal))                                  \
    FUNCTION(device_name, "cuDeviceGetName", (char *name, int size, int device))                     \
    FUNCTION(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))      \
    FUNCTION(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, int device))                      \
    FUNCTION(error_name, "cuGetErrorName", (int error, const char **name))                           \
    FUNCTION(context_retain, "cuDevicePrimaryCtxRetain", (GpuObject *context, int device))           \
    FUNCTION(context_use, "cuCtxSetCurrent", (GpuObject context))                                    \
    FUNCTION(synchronize, "cuCtxSynchronize", (void))                                                \
    FUNCTION(memory_info, "cuMemGetInfo_v2", (size_t *free, size_t *total))                          \
    FUNCTION(allocate, "cuMemAlloc_v2", (DeviceMemory *memory, size_t bytes))                        \
    FUNCTION(release, "cuMemFree_v2", (DeviceMemory memory))                                         \
    FUNCTION(upload, "cuMemcpyHtoD_v2", (DeviceMemory to, const void *from, size_t bytes))           \
    FUNCTION(download, "cuMemcpyDtoH_v2", (void *to, DeviceMemory from, size_t bytes))               \
    FUNCTION(fill, "cuMemsetD8_v2", (DeviceMemory memory, unsigned char value, size_t bytes))        \
    FUNCTION(module_load, "cuModuleLoadData", (GpuObject *module, const void *image))                \
    FUNCTION(module_function, "cuModuleGetFunction",                                                 \
             (GpuObject *function, GpuObject module, const char *name))                              \
    FUNCTION(launch, "cuLaunchKernel",                                                               \
             (GpuObject function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
              unsigned block_y, unsigned block_z, unsigned shared_bytes, GpuObject stream,           \
              void **parameters, void **extra))                                                      \
    FUNCTION(event_create, "cuEventCreate", (GpuObject *event, unsigned flags))                      \
    FUNCTION(event_record, "cuEventRecord", (GpuObject event, GpuObject stream))                     \
    FUNCTION(event_wait, "cuEventSynchronize", (GpuObject event))                                    \
    FUNCTION(event_elapsed, "cuEventElapsedTime", (float *milliseconds, GpuObject from, GpuObject to)) \
    FUNCTION(event_destroy, "cuEventDestroy_v2", (GpuObject event))

#define MEMBER(member, symbol, parameters) int(*member) parameters;
typedef struct {
    GPU_FUNCTIONS(MEMBER)
} Gpu;

/* Find every function; return the name of one that the driver lacks, or null. */
const char *gpu_find(Gpu *gpu, Library driver);
/* The driver's own name of an error, such as CUDA_ERROR_OUT_OF_MEMORY. */
const char *gpu_error_name(const Gpu *gpu, int error);

#endif
