/* A stand-in for NVIDIA's libcuda.so.1: -DERROR=n is the answer of cuInit, -DGPUS=n the number of GPUs.
 *
 * Written from the public documentation of the calls; needs no NVIDIA header. Compiled by the tests.
 */
#ifndef ERROR
#define ERROR 0
#endif
#ifndef GPUS
#define GPUS 1
#endif

int cuInit(unsigned flags) {
  (void)flags;
  return ERROR;
}

int cuDeviceGetCount(int *count) {
  *count = GPUS;
  return ERROR;
}

int cuGetErrorName(int error, const char **text) {
  *text = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

int cuGetErrorString(int error, const char **text) {
  *text = error == 100 ? "no CUDA-capable device is detected" : "unknown error";
  return 0;
}
