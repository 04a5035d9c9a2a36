/* stored_changes.h: requests that read or change what is stored, other than events: histories and the catalogue. They are handled by
 * the committing thread. */
#ifndef SERVER_STORED_CHANGES_H
#define SERVER_STORED_CHANGES_H

#include "server.h"

extern const srv_member srv_names_members[], srv_names_response[], srv_page_members[], srv_history_response[],
    srv_merge_members[], srv_position_response[], srv_items_members[], srv_item_search_members[], srv_items_response[];

void srv_handle_names(srv_request *request); /* how histories are called */
void srv_handle_history(srv_request *request);
void srv_handle_erase(srv_request *request);
void srv_handle_merge(srv_request *request);
void srv_handle_items(srv_request *request);     /* GET: a page of the catalogue */
void srv_handle_put_items(srv_request *request); /* PUT replaces items, PATCH changes some of their fields */

#endif
