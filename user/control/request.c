// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is said on a connection: calls, answers, errors, and org.varlink.service. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/object.h"
#include "control/server_private.h"

#define SERVICE "org.varlink.service"
#define UNSENT "an answer could not be sent"

static const char service_description[] =
	"# What every varlink service tells of itself (https://varlink.org/Service).\n"
	"interface " SERVICE "\n"
	"\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n"
	"  product: string,\n"
	"  version: string,\n"
	"  url: string,\n"
	"  interfaces: []string\n"
	")\n"
	"\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error MethodNotImplemented (method: string)\n"
	"error InvalidParameter (parameter: string)\n"
	"error PermissionDenied ()\n"
	"error ExpectedMore ()\n";

void sl_request_drop(struct sl_request *request)
{
	sl_fds_close(&request->fds);
	json_object_put(request->parameters);
	json_object_put(request->json);
	request->parameters = NULL;
	request->json = NULL;
	request->method = NULL;
}

/* Sends and watches; a client that can't be answered is ended. */
static int send_message(struct sl_request *request, struct json_object *message)
{
	struct sl_client *client = request->client;
	int ret = message ? sl_wire_put(client->wire, message, NULL) : -ENOMEM;

	json_object_put(message);
	if (!ret) {
		ret = sl_wire_flush(client->wire);
		if (ret == -EAGAIN)
			ret = 0;
	}
	if (!ret)
		sl_client_watch(client);
	return ret;
}

static struct json_object *message_new(const char *key, struct json_object *value,
				       struct json_object *parameters)
{
	struct json_object *message = json_object_new_object();

	if (!parameters)
		parameters = json_object_new_object();
	if (!message || (key && sl_json_add(message, key, value)) ||
	    sl_json_add(message, "parameters", parameters)) {
		json_object_put(message);
		return NULL;
	}
	return message;
}

static void answer(struct sl_request *request, struct json_object *message)
{
	struct sl_client *client = request->client;
	bool oneway = request->oneway;

	sl_request_drop(request);
	client->kicked = !client->taking && sl_wire_partial(client->wire);
	if (oneway) {
		json_object_put(message);
		sl_client_watch(client);
	} else if (send_message(request, message)) {
		client->unanswered = true;
		sl_client_end_for(client, UNSENT);
	}
}

static struct json_object *closed_new(const struct sl_server *server, const char *text, bool taken)
{
	struct json_object *parameters = json_object_new_object();
	char error[64];

	snprintf(error, sizeof(error), "%s.Closed", server->options.interface->name);
	if (parameters)
		sl_json_add(parameters, "text", json_object_new_string(text));
	if (parameters)
		sl_json_add(parameters, "taken", json_object_new_boolean(taken));
	return message_new("error", json_object_new_string(error), parameters);
}

/* As well as it goes: the connection ends. */
void sl_client_say_end(struct sl_client *client)
{
	bool taken = client->unanswered || client->request.json;
	struct json_object *message = closed_new(client->server, client->cause, taken);

	if (message && !sl_wire_put(client->wire, message, NULL))
		sl_wire_flush(client->wire);
	json_object_put(message);
}

void sl_closed_send(const struct sl_server *server, int fd, const char *text)
{
	struct json_object *message = closed_new(server, text, false);
	size_t len;
	const char *bytes =
		json_object_to_json_string_length(message, JSON_C_TO_STRING_PLAIN, &len);

	/* Its NUL as well: the end of a message. */
	if (message && bytes)
		(void)sl_fds_send(fd, bytes, len + 1, NULL);
	json_object_put(message);
}

void sl_request_reply(struct sl_request *request, struct json_object *parameters)
{
	answer(request, message_new(NULL, NULL, parameters));
}

void sl_request_error(struct sl_request *request, const char *error, struct json_object *parameters)
{
	answer(request, message_new("error", json_object_new_string(error), parameters));
}

int sl_request_continue(struct sl_request *request, struct json_object *parameters)
{
	int ret = send_message(request,
			       message_new("continues", json_object_new_boolean(true), parameters));

	if (ret && ret != -ENOBUFS)
		sl_client_end_for(request->client, UNSENT);
	return ret;
}

/* An error of org.varlink.service with one parameter, or none. `text` is the client's. */
static void refuse(struct sl_request *request, const char *error, const char *key, const char *text)
{
	struct json_object *parameters = json_object_new_object();

	if (parameters && key)
		sl_json_add(parameters, key, sl_json_string(text, strlen(text)));
	sl_request_error(request, error, parameters);
}

void sl_request_invalid(struct sl_request *request, const char *parameter)
{
	refuse(request, SERVICE ".InvalidParameter", "parameter", parameter);
}

static void get_info(struct sl_request *request)
{
	const struct sl_server_options *options = &request->client->server->options;
	struct json_object *info = json_object_new_object(), *names = json_object_new_array();

	if (!info || !names) {
		json_object_put(names);
	} else {
		json_object_array_add(names, json_object_new_string(SERVICE));
		json_object_array_add(names, json_object_new_string(options->interface->name));
		sl_json_add(info, "vendor", json_object_new_string("sluice"));
		sl_json_add(info, "product", json_object_new_string(options->product));
		sl_json_add(info, "version", json_object_new_string(options->version));
		sl_json_add(info, "url", json_object_new_string(""));
		sl_json_add(info, "interfaces", names);
	}
	sl_request_reply(request, info);
}

static void get_description(struct sl_request *request)
{
	const struct sl_interface *interface = request->client->server->options.interface;
	struct json_object *name, *out;
	const char *wanted, *text;

	if (!json_object_object_get_ex(request->parameters, "interface", &name) ||
	    !json_object_is_type(name, json_type_string)) {
		sl_request_invalid(request, "interface");
		return;
	}
	wanted = json_object_get_string(name);
	if (!strcmp(wanted, SERVICE)) {
		text = service_description;
	} else if (!strcmp(wanted, interface->name)) {
		text = interface->description;
	} else {
		refuse(request, SERVICE ".InterfaceNotFound", "interface", wanted);
		return;
	}
	out = json_object_new_object();
	if (out)
		sl_json_add(out, "description", json_object_new_string(text));
	sl_request_reply(request, out);
}

static void run_service(struct sl_request *request, const char *name)
{
	if (!strcmp(name, "GetInfo"))
		get_info(request);
	else if (!strcmp(name, "GetInterfaceDescription"))
		get_description(request);
	else
		refuse(request, SERVICE ".MethodNotFound", "method", request->method);
}

static void run_method(struct sl_request *request, const struct sl_method *method)
{
	if ((method->flags & SL_METHOD_ROOT) && request->client->peer.uid)
		refuse(request, SERVICE ".PermissionDenied", NULL, NULL);
	else if ((method->flags & SL_METHOD_MORE) && !request->more)
		refuse(request, SERVICE ".ExpectedMore", NULL, NULL);
	else
		method->fn(request, request->client->server->options.ctx);
}

static bool get_flag(struct json_object *json, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(json, key, &value) && json_object_get_boolean(value);
}

/* -EBADMSG: no call at all. Unknown keys are left alone, as varlink wants it. */
static int parse(struct sl_request *request)
{
	struct json_object *method, *parameters = NULL;

	if (!json_object_object_get_ex(request->json, "method", &method) ||
	    !json_object_is_type(method, json_type_string))
		return -EBADMSG;
	json_object_object_get_ex(request->json, "parameters", &parameters);
	if (parameters && !json_object_is_type(parameters, json_type_object))
		return -EBADMSG;
	request->parameters = parameters ? json_object_get(parameters) : json_object_new_object();
	if (!request->parameters)
		return -ENOMEM;
	request->method = json_object_get_string(method);
	request->more = get_flag(request->json, "more");
	request->oneway = get_flag(request->json, "oneway");
	/* Answers to one call only can't be promised if none is wanted, and an upgrade none. */
	return (request->more && request->oneway) || get_flag(request->json, "upgrade") ? -EBADMSG
											: 0;
}

void sl_request_run(struct sl_request *request)
{
	struct sl_server *server = request->client->server;
	const struct sl_interface *interface = server->options.interface;
	size_t len = strlen(interface->name);

	if (parse(request)) {
		server->counts[SL_SERVER_MALFORMED]++;
		sl_request_drop(request);
		sl_client_end_for(request->client, "a message was no call");
		return;
	}
	if (!strncmp(request->method, SERVICE ".", strlen(SERVICE) + 1)) {
		run_service(request, request->method + strlen(SERVICE) + 1);
		return;
	}
	if (strncmp(request->method, interface->name, len) != 0 || request->method[len] != '.') {
		refuse(request, SERVICE ".InterfaceNotFound", "interface", request->method);
		return;
	}
	for (size_t i = 0; i < interface->count; i++) {
		if (!strcmp(request->method + len + 1, interface->methods[i].name)) {
			run_method(request, &interface->methods[i]);
			return;
		}
	}
	refuse(request, SERVICE ".MethodNotFound", "method", request->method);
}

struct json_object *sl_request_parameters(const struct sl_request *request)
{
	return request->parameters;
}

struct sl_client *sl_request_client(const struct sl_request *request)
{
	return request->client;
}

const char *sl_request_method(const struct sl_request *request)
{
	return request->method;
}

int sl_request_take_fd(struct sl_request *request, unsigned int index)
{
	return sl_fds_take(&request->fds, index);
}
