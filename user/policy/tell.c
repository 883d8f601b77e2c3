// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policy/tell.h"

#include "base/log.h"

void sl_policy_tell(const struct sl_policy *policy)
{
	for (size_t i = 0; i < policy->note_count; i++) {
		const struct sl_policy_note *note = &policy->notes[i];

		sl_log(note->kind == SL_NOTE_WARNING ? SL_LOG_WARNING : SL_LOG_NOTICE,
		       "%s:%u:%u: %s", policy->file, note->at.line, note->at.column, note->text);
	}
}
