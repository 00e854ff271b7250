/* A library that answers like no cuDNN does.
 *
 * Smoke tests copy it under every payload name into a folder that stands first on the search
 * path: a process that picks it up instead of the artifact's own files says version 1, and every
 * check says 99.
 */
#include <stddef.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
int DllMain(void *module, unsigned reason, void *reserved) {
    (void)module, (void)reason, (void)reserved;
    return 1;
}
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { DECOY_VERSION = 1, DECOY_STATUS = 99 };

EXPORT size_t cudnnGetVersion(void) { return DECOY_VERSION; }
EXPORT size_t cudnnGetCudartVersion(void) { return DECOY_VERSION; }
EXPORT const char *cudnnGetErrorString(int status) {
    (void)status;
    return "this is the decoy, not cuDNN";
}

#define REFUSE(name) \
    EXPORT int name(void) { return DECOY_STATUS; }

REFUSE(cudnnCreate)
/* cuDNN 8 */
REFUSE(cudnnOpsInferVersionCheck)
REFUSE(cudnnOpsTrainVersionCheck)
REFUSE(cudnnCnnInferVersionCheck)
REFUSE(cudnnCnnTrainVersionCheck)
REFUSE(cudnnAdvInferVersionCheck)
REFUSE(cudnnAdvTrainVersionCheck)
/* cuDNN 9 */
REFUSE(cudnnGraphVersionCheck)
REFUSE(cudnnOpsVersionCheck)
REFUSE(cudnnCnnVersionCheck)
REFUSE(cudnnAdvVersionCheck)
REFUSE(cudnnSubquadraticOpsVersionCheck)
REFUSE(cudnnBackendCreateDescriptor)
REFUSE(cudnnBackendFinalize)
