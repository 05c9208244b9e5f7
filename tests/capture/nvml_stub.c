/* A stand-in for NVIDIA's libnvidia-ml.so.1: GPU 0 tells everything, GPU 1 has no power meter.
 *
 * Written from the public documentation of the calls; needs no NVIDIA header. Compiled by
 * test_nvml.py. -DOLD_DRIVER leaves out what drivers before 535 do not know, -DBROKEN refuses to
 * start. A call that is under way while another thread shuts down aborts the process, as the real
 * library may.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9 };

static int devices[2] = {0, 1};
static atomic_int ready, inside;

#define CALL(body)                  \
  {                                 \
    if (!ready) return UNINITIALIZED; \
    inside++;                       \
    int result = OK;                \
    usleep(2000);                   \
    body;                           \
    inside--;                       \
    return result;                  \
  }

const char *nvmlErrorString(int code) { return code == DRIVER_NOT_LOADED ? "no driver" : "error"; }

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
#ifdef BROKEN
  return DRIVER_NOT_LOADED;
#endif
  ready = 1;
  return OK;
}

int nvmlShutdown(void) {
  if (inside) abort();
  ready = 0;
  return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count) CALL(*count = 2)

int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **out) {
  if (index > 1) return INVALID_ARGUMENT;
  *out = &devices[index];
  return OK;
}

int nvmlDeviceGetName(int *gpu, char *out, unsigned size)
    CALL(snprintf(out, size, "Stub %d", *gpu))

int nvmlDeviceGetUUID(int *gpu, char *out, unsigned size)
    CALL(snprintf(out, size, "GPU-0000000%d", *gpu))

int nvmlDeviceGetUtilizationRates(int *gpu, unsigned *out) CALL(out[0] = *gpu ? 10 : 75; out[1] = 20)

int nvmlDeviceGetMemoryInfo(int *gpu, unsigned long long *out)
    CALL((void)gpu; out[0] = 16ull << 30; out[1] = 12ull << 30; out[2] = 4ull << 30)

int nvmlDeviceGetClockInfo(int *gpu, int kind, unsigned *mhz)
    CALL((void)gpu; *mhz = kind == 1 ? 1700 : 0)

int nvmlDeviceGetPowerUsage(int *gpu, unsigned *milliwatts)
    CALL(if (*gpu) result = NOT_SUPPORTED; else *milliwatts = 412500)

static int reasons(int *gpu, unsigned long long *mask) CALL((void)gpu; *mask = 0x1 | 0x4 | 0x40)

#ifdef OLD_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(int *gpu, unsigned long long *mask) {
  return reasons(gpu, mask);
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(int *gpu, unsigned long long *mask) {
  return reasons(gpu, mask);
}
#endif
