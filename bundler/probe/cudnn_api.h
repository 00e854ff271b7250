/* The cuDNN functions that the check calls, the same in versions 8 and 9, found at run time.
 * Source of the signatures and numbers: NVIDIA's cuDNN API reference. */
#ifndef CUDNN_API_H
#define CUDNN_API_H

#include "gpu.h"

enum {
    CUDNN_FLOAT = 0,
    CUDNN_HALF = 2,
    CUDNN_NCHW = 0,
    CUDNN_CROSS_CORRELATION = 1,
};

/* cudnnConvolutionFwdAlgoPerf_t and its two backward twins. */
typedef struct {
    int algorithm;
    int status;
    float time;
    size_t memory;
    int determinism;
    int math_type;
    int reserved[3];
} Performance;

typedef void *Descriptor;
typedef void *CudnnHandle;

/* One signature serves all three directions: what is given, what is given, what is wanted. */
typedef int (*FindAlgorithm)(CudnnHandle handle, Descriptor one, Descriptor two, Descriptor convolution, Descriptor result,
                             int asked, int *found, Performance *performances);
typedef int (*WorkspaceSize)(CudnnHandle handle, Descriptor one, Descriptor two, Descriptor convolution, Descriptor result,
                             int algorithm, size_t *bytes);
typedef int (*Convolve)(CudnnHandle handle, const void *alpha, Descriptor one_form, DeviceMemory one, Descriptor two_form,
                        DeviceMemory two, Descriptor convolution, int algorithm, DeviceMemory workspace, size_t workspace_bytes,
                        const void *beta, Descriptor result_form, DeviceMemory result);

#define CUDNN_FUNCTIONS(FUNCTION)                                                                           \
    FUNCTION(create_tensor, "cudnnCreateTensorDescriptor", (Descriptor * descriptor))                       \
    FUNCTION(destroy_tensor, "cudnnDestroyTensorDescriptor", (Descriptor descriptor))                       \
    FUNCTION(set_tensor, "cudnnSetTensor4dDescriptor",                                                      \
             (Descriptor descriptor, int format, int type, int n, int c, int h, int w))                     \
    FUNCTION(create_filter, "cudnnCreateFilterDescriptor", (Descriptor * descriptor))                       \
    FUNCTION(destroy_filter, "cudnnDestroyFilterDescriptor", (Descriptor descriptor))                       \
    FUNCTION(set_filter, "cudnnSetFilter4dDescriptor",                                                      \
             (Descriptor descriptor, int type, int format, int k, int c, int r, int s))                     \
    FUNCTION(create_convolution, "cudnnCreateConvolutionDescriptor", (Descriptor * descriptor))             \
    FUNCTION(destroy_convolution, "cudnnDestroyConvolutionDescriptor", (Descriptor descriptor))             \
    FUNCTION(set_convolution, "cudnnSetConvolution2dDescriptor",                                            \
             (Descriptor descriptor, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,      \
              int dilation_w, int mode, int type))

#define CUDNN_DIRECTIONS(DIRECTION)                                                                  \
    DIRECTION(FORWARD, "forward", "cudnnGetConvolutionForwardAlgorithm_v7",                          \
              "cudnnGetConvolutionForwardWorkspaceSize", "cudnnConvolutionForward")                  \
    DIRECTION(BACKWARD_DATA, "backward data", "cudnnGetConvolutionBackwardDataAlgorithm_v7",         \
              "cudnnGetConvolutionBackwardDataWorkspaceSize", "cudnnConvolutionBackwardData")        \
    DIRECTION(BACKWARD_FILTER, "backward filter", "cudnnGetConvolutionBackwardFilterAlgorithm_v7",   \
              "cudnnGetConvolutionBackwardFilterWorkspaceSize", "cudnnConvolutionBackwardFilter")

#define DIRECTION_ID(id, words, find, size, run) id,
typedef enum { CUDNN_DIRECTIONS(DIRECTION_ID) DIRECTION_COUNT } Direction;

typedef struct {
    FindAlgorithm find;
    WorkspaceSize workspace;
    Convolve run;
} DirectionApi;

typedef struct {
    CUDNN_FUNCTIONS(MEMBER)
    const char *(*error_text)(int status);
    DirectionApi directions[DIRECTION_COUNT];
} CudnnApi;

/* Find every function; return the name of one that the library lacks, or null. */
const char *cudnn_find(CudnnApi *api, Library library);
const char *direction_name(Direction direction);

#endif
