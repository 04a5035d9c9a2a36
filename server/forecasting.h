/* forecasting.h: POST /v1/forecast: futures of histories, drawn event by event. */
#ifndef SERVER_FORECASTING_H
#define SERVER_FORECASTING_H

#include "questions.h"

extern const srv_member srv_forecast_members[], srv_forecast_response[];

void srv_forecast(srv_worker *worker, srv_request *request);

#endif
