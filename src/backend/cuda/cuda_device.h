/* cuda_device.h: the few calls of a device that are no kernels: memory, copies, and recordings that are replayed. One device
 * and one stream: everything happens in the order it is asked for. With tests/emulate the device is the CPU. */
#ifndef LP_CUDA_DEVICE_H
#define LP_CUDA_DEVICE_H

#include "backend/cuda/cuda_schedule.h"

/* Finds the device; at the second call does nothing. NULL, or why there is none. */
const char *lp_device_open(void);
/* Its name, and how many blocks it runs side by side. */
const char *lp_device_name(void);
/* Its compute capability: 80, 90, .. */
int lp_device_level(void);

/* Zeroed, 256-byte aligned; NULL when there is none left. */
void *lp_device_alloc(size_t size);
void lp_device_free(void *data);
/* Memory of the host that copies leave without waiting. */
void *lp_device_pinned(size_t size);
void lp_device_pinned_free(void *data);

/* In stream order. Upload from pinned memory returns at once; from other memory when it has been read. */
void lp_device_upload(void *to, const void *from, size_t size);
/* Into pinned memory; there after the next sync. */
void lp_device_fetch(void *to, const void *from, size_t size);
/* Returns when the data is there. */
void lp_device_download(void *to, const void *from, size_t size);
void lp_device_clear(void *data, size_t size);
void lp_device_sync(void);

/* Launches and clearing go to this lane from now on; to lane 0 at first. Only what is recorded may use others. */
void lp_device_use(int lane);
/* While recording: notes the end of the lane in use under a number below LP_DEVICE_SIGNALS; lets the lane in use wait for that. */
enum { LP_DEVICE_SIGNALS = 1024 };
void lp_device_signal(int number);
void lp_device_wait_for(int number);

/* Data that comes from the host with every step has LP_DEVICE_MARKS places, used in turn, so that the host may be some steps
 * ahead. A mark says that the stream is done with one of them. Each user has marks of its own: it would otherwise wait for what
 * it has itself just asked for. */
enum { LP_DEVICE_MARKS = 4 };
typedef enum lp_device_user { LP_DEVICE_RUN, LP_DEVICE_ADAM, LP_DEVICE_USERS } lp_device_user;
/* Notes the present end of the stream, and waits until the stream has passed it. */
void lp_device_mark(lp_device_user user, int mark);
void lp_device_wait(lp_device_user user, int mark);
/* Like upload, from pinned memory, but at once, beside what the stream is doing: what the stream does with `to` must be over.
 * What is asked of the stream from now on waits for it. */
void lp_device_deliver(lp_device_user user, int mark, void *to, const void *from, size_t size);
/* Within the device's memory, in stream order. */
void lp_device_move(void *to, const void *from, size_t size);

/* While recording: the first lane, which is then in use, waits for all others. */
void lp_device_join(void);

/* Between begin and end launches are recorded, not made. Begin is false where the device cannot record; end gives the
 * recording, or NULL when it failed. */
bool lp_device_record_begin(void);
void *lp_device_record_end(void);
void lp_device_replay(void *recording);
void lp_device_record_free(void *recording);

/* How long what is launched between the two takes, in seconds; stop waits for it. The device is kept busy at first, so that it
 * does not wait for the launches. */
void lp_device_watch_start(void);
double lp_device_watch_stop(void);

/* The first thing that went wrong, or NULL. */
const char *lp_device_problem(void);
void lp_device_problem_set(const char *what, const char *reason);

#endif
