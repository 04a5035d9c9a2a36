/* background.c: one thread that sleeps until it is asked. */
#include "base/threads.h"

#include "base/memory.h"

#include <pthread.h>

struct lp_background {
    void (*work)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool asked, ending;
};

static void *serve(void *one)
{
    lp_background *this = one;
    pthread_mutex_lock(&this->lock);
    for (;;) {
        while (!this->asked && !this->ending)
            pthread_cond_wait(&this->changed, &this->lock);
        if (!this->asked)
            break;
        pthread_mutex_unlock(&this->lock);
        this->work(this->context);
        pthread_mutex_lock(&this->lock);
        this->asked = false;
        pthread_cond_broadcast(&this->changed);
    }
    pthread_mutex_unlock(&this->lock);
    return NULL;
}

lp_background *lp_background_new(void (*work)(void *context), void *context)
{
    lp_background *this = lp_alloc(1, sizeof *this);
    if (!this)
        return NULL;
    *this = (lp_background){.work = work, .context = context};
    pthread_mutex_init(&this->lock, NULL);
    pthread_cond_init(&this->changed, NULL);
    if (pthread_create(&this->thread, NULL, serve, this) == 0)
        return this;
    pthread_mutex_destroy(&this->lock);
    pthread_cond_destroy(&this->changed);
    lp_free(this);
    return NULL;
}

void lp_background_ask(lp_background *background)
{
    pthread_mutex_lock(&background->lock);
    background->asked = true;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
}

void lp_background_wait(lp_background *background)
{
    pthread_mutex_lock(&background->lock);
    while (background->asked)
        pthread_cond_wait(&background->changed, &background->lock);
    pthread_mutex_unlock(&background->lock);
}

void lp_background_free(lp_background *background)
{
    if (!background)
        return;
    lp_background_wait(background);
    pthread_mutex_lock(&background->lock);
    background->ending = true;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
    pthread_join(background->thread, NULL);
    pthread_mutex_destroy(&background->lock);
    pthread_cond_destroy(&background->changed);
    lp_free(background);
}
