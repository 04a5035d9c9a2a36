/* expression.h: expressions over the fields of an item: category == "toys" and price < 20 and not brand in ["x"]. */
#ifndef SERVER_EXPRESSION_H
#define SERVER_EXPRESSION_H

#include "request_schema.h"

typedef struct srv_expression srv_expression;

/* Parses; a problem names the byte of the text. `field` is the member of the request. */
bool srv_expression_new(const char *text, const char *field, srv_expression **expression, srv_problem *problem);
void srv_expression_free(srv_expression *expression);

/* The value for an item: its fields (NULL: none) and its name, which is the field "item". A comparison with a missing field
 * is false, except == null. */
bool srv_expression_true(const srv_expression *expression, const json_t *fields, const char *name);
double srv_expression_number(const srv_expression *expression, const json_t *fields, const char *name);

#endif
