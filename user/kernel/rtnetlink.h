/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A message to rtnetlink(7): its head and attributes. Private to user/kernel. */
#ifndef SLUICE_USER_RTNETLINK_H
#define SLUICE_USER_RTNETLINK_H

#include <string.h>

#include <linux/rtnetlink.h>

/* Made with nlmsg_len up to the end of the member of the union that is in use. */
struct sl_rt_request {
	struct nlmsghdr head;
	union {
		struct ifinfomsg link;
		struct rtmsg route;
		struct ifaddrmsg addr;
	};
	char attrs[64];
};

/* `attrs` has to have room for it. */
static inline void sl_rt_put_attr(struct sl_rt_request *req, unsigned short type, const void *data,
				  size_t size)
{
	struct rtattr *attr = (struct rtattr *)((char *)req + NLMSG_ALIGN(req->head.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(size);
	memcpy(RTA_DATA(attr), data, size);
	req->head.nlmsg_len = NLMSG_ALIGN(req->head.nlmsg_len) + RTA_ALIGN(attr->rta_len);
}

#endif
