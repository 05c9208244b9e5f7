/* A stand-in for NVIDIA's libnvidia-ml.so.1: GPU 0 tells everything, GPU 1 has no power meter.
 *
 * Written from the public documentation of the calls; needs no NVIDIA header. Compiled by
 * the tests. -DOLD_DRIVER leaves out what drivers before 535 do not know, -DBROKEN refuses to
 * start, -DMIG divides GPU 0 into instances 3 and 5, -DLOST_AFTER=n loses GPU 1 after n readings of
 * its load, -DHANG_AFTER=n never returns from reading it. -DOPEN_US=n takes so long to initialize a
 * GPU, with -DPERSISTENCE=0 as it does in each process; -DPCIE_WIDTH=n is the link in use of 16 lanes,
 * -DOTHER_SM=n the load by the process 1, -DALONE lists no process, -DIDLE_S=n idles at 90 W for so
 * long after the start. GPU 0 is a Hopper with GPM. A call that is under way while another thread
 * shuts down aborts the process, as the real library may.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15
};

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

#ifndef OPEN_US
#define OPEN_US 0
#endif
#ifndef PERSISTENCE
#define PERSISTENCE 1
#endif
#ifndef PCIE_WIDTH
#define PCIE_WIDTH 16
#endif
#ifndef OTHER_SM
#define OTHER_SM 0
#endif
#ifndef IDLE_S
#define IDLE_S 0.0
#endif

static double began;
static double elapsed(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9 - began;
}
static int idle(void) { return elapsed() < IDLE_S; }

const char *nvmlErrorString(int code) { return code == DRIVER_NOT_LOADED ? "no driver" : "error"; }

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
#ifdef BROKEN
  return DRIVER_NOT_LOADED;
#endif
  if (!ready) began += elapsed();
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
  static int opened[2];
  if (index > 1) return INVALID_ARGUMENT;
  if (!opened[index]++) usleep(OPEN_US);
  *out = &devices[index];
  return OK;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) CALL(snprintf(out, size, "580.95.05"))

int nvmlDeviceGetName(int *gpu, char *out, unsigned size)
    CALL(snprintf(out, size, "Stub %d", *gpu))

int nvmlDeviceGetUUID(int *gpu, char *out, unsigned size)
    CALL(snprintf(out, size, "GPU-0000000%d", *gpu))

#ifndef LOST_AFTER
#define LOST_AFTER (1 << 30)
#endif
#ifndef HANG_AFTER
#define HANG_AFTER (1 << 30)
#endif
static atomic_int loads;

int nvmlDeviceGetUtilizationRates(int *gpu, unsigned *out) {
  if (*gpu && ++loads > HANG_AFTER) sleep(1000);
  if (*gpu && loads > LOST_AFTER) return GPU_IS_LOST;
#ifdef MIG
  if (!*gpu) return NOT_SUPPORTED;
#endif
  CALL(out[0] = *gpu ? 10 : idle() ? 0 : 75; out[1] = 20)
}

int nvmlDeviceGetMemoryInfo(int *gpu, unsigned long long *out)
    CALL((void)gpu; out[0] = 16ull << 30; out[1] = 12ull << 30; out[2] = 4ull << 30)

int nvmlDeviceGetClockInfo(int *gpu, int kind, unsigned *mhz)
    CALL((void)gpu; *mhz = kind == 1 ? 1700 : 0)

int nvmlDeviceGetMaxClockInfo(int *gpu, int kind, unsigned *mhz)
    CALL((void)gpu; *mhz = kind == 1 ? 1980 : 0)

int nvmlDeviceGetPowerUsage(int *gpu, unsigned *milliwatts)
    CALL(if (*gpu) result = NOT_SUPPORTED; else *milliwatts = idle() ? 90000 : 412500)

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

static unsigned long long millijoules_since(double s) {
  double still = s < IDLE_S ? s : IDLE_S;
  return 5000000ull + (unsigned long long)(90000 * still + 412500 * (s - still));
}

int nvmlDeviceGetTotalEnergyConsumption(int *gpu, unsigned long long *millijoules)
    CALL(if (*gpu) result = NOT_SUPPORTED; else *millijoules = millijoules_since(elapsed()))

/* The settings of the board: of GPU 0 alone, as laptops tell few of them. */

#define TOLD(name, type, value) \
  int name(int *gpu, type *out) CALL(if (*gpu) result = NOT_SUPPORTED; else *out = (value))

TOLD(nvmlDeviceGetPersistenceMode, int, PERSISTENCE)
TOLD(nvmlDeviceGetEnforcedPowerLimit, unsigned, 500000)
TOLD(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, 700000)
TOLD(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 5)
TOLD(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 5)
TOLD(nvmlDeviceGetCurrPcieLinkWidth, unsigned, PCIE_WIDTH)
TOLD(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)

int nvmlDeviceGetPowerManagementLimitConstraints(int *gpu, unsigned *least, unsigned *most)
    CALL(if (*gpu) result = NOT_SUPPORTED; else { *least = 200000; *most = 700000; })

int nvmlDeviceGetTemperatureThreshold(int *gpu, int kind, unsigned *out)
    CALL(if (*gpu || kind != 1) result = NOT_SUPPORTED; else *out = 90)

int nvmlDeviceGetEccMode(int *gpu, int *current, int *pending)
    CALL(if (*gpu) result = NOT_SUPPORTED; else *current = *pending = 1)

int nvmlDeviceGetTotalEccErrors(int *gpu, int kind, int counter, unsigned long long *out)
    CALL(if (*gpu || kind != 1 || counter) result = NOT_SUPPORTED; else *out = 0)

typedef struct {
  unsigned pid;
  unsigned long long timestamp_us;
  unsigned sm, memory, encoder, decoder;
} user;

int nvmlDeviceGetProcessUtilization(int *gpu, user *out, unsigned *count, unsigned long long since) {
  (void)since;
  if (*gpu || !OTHER_SM) return NOT_FOUND;
  unsigned given = *count;
  *count = 2;
  if (given < 2 || !out) return INSUFFICIENT_SIZE;
  memset(out, 0, 2 * sizeof *out);
  out[0].pid = (unsigned)getpid();
  out[0].sm = 30;
  out[1].pid = 1;
  out[1].sm = OTHER_SM;
  return OK;
}

typedef struct {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  int value_type, code;
  union { double d; unsigned u; unsigned long long ull; } value;
} field_value;

int nvmlDeviceGetFieldValues(int *gpu, int count, field_value *values) {
  for (int i = 0; i < count; i++) {
    values[i].value_type = 3;
    values[i].code = *gpu ? NOT_SUPPORTED : OK;
    values[i].value.ull = 1000000ull * values[i].field;
  }
  return OK;
}

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} process_info;

static int processes(int *gpu, unsigned *count, process_info *out) {
#ifdef ALONE
  unsigned have = 0;
#else
  unsigned have = *gpu ? 0 : 2;
#endif
  if (have && (*count < have || !out)) {
    *count = have;
    return INSUFFICIENT_SIZE;
  }
  *count = have;
  if (!have) return OK;
  memset(out, 0, 2 * sizeof *out);
  out[0].pid = (unsigned)getpid();
  out[0].used = 3ull << 30;
  out[1].pid = 1;
  out[1].used = 1ull << 30;
  return OK;
}

#ifdef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v2(int *gpu, unsigned *count, process_info *out) {
  return processes(gpu, count, out);
}
#else
int nvmlDeviceGetComputeRunningProcesses_v3(int *gpu, unsigned *count, process_info *out) {
  return processes(gpu, count, out);
}

/* MIG */

static int instances[2] = {3, 5};

int nvmlDeviceGetMigMode(int *gpu, unsigned *current, unsigned *pending) {
  if (*gpu) return NOT_SUPPORTED;
#ifdef MIG
  *current = *pending = 1;
#else
  *current = *pending = 0;
#endif
  return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(int *gpu, unsigned *count) { (void)gpu; *count = 7; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(int *gpu, unsigned index, int **out) {
  (void)gpu;
  if (index > 1) return NOT_FOUND;
  *out = &instances[index];
  return OK;
}

int nvmlDeviceGetGpuInstanceId(int *part, unsigned *out) { *out = (unsigned)*part; return OK; }

/* GPM: 40 % tensor activity of a whole GPU, 4 times its number of an instance; no NVLink */

typedef struct { int instance, valid; } gpm_sample;
typedef struct { unsigned version, supported; } gpm_support;
typedef struct { unsigned id; int code; double value; char *short_name, *long_name, *unit; } metric;
typedef struct { unsigned version, count; gpm_sample *older, *newer; metric metrics[]; } metrics_get;
static atomic_int samples;

int nvmlGpmQueryDeviceSupport(int *gpu, gpm_support *out) { out->supported = !*gpu; return OK; }
int nvmlGpmSampleAlloc(gpm_sample **out) { samples++; *out = calloc(1, sizeof **out); return OK; }
int nvmlGpmSampleFree(gpm_sample *sample) { samples--; free(sample); return OK; }
int nvmlGpmSampleGet(int *gpu, gpm_sample *out) {
#ifdef MIG
  (void)gpu; (void)out;
  return NOT_SUPPORTED;
#else
  (void)gpu;
  out->instance = 10;
  out->valid = 1;
  return OK;
#endif
}
int nvmlGpmMigSampleGet(int *gpu, unsigned instance, gpm_sample *out) {
  (void)gpu;
  out->instance = (int)instance;
  out->valid = 1;
  return OK;
}
int nvmlGpmMetricsGet(metrics_get *get) {
  if (get->version != 1 || !get->older->valid || !get->newer->valid) return INVALID_ARGUMENT;
  for (unsigned i = 0; i < get->count; i++) {
    metric *m = &get->metrics[i];
    m->code = m->id >= 60 ? NOT_SUPPORTED : OK;
    m->value = m->id == 9 ? 0.0 / 0.0 : m->id == 5 ? 4.0 * get->newer->instance : 12.5;
  }
  return OK;
}
#endif
