import { OffsiteError } from '../base/offsite-error.ts';
import { type Wire, wires } from '../suite/model-config.ts';
import type { ModelRole } from './gateway.ts';
import { ReplayMiss } from './replay/cassette.ts';
import type { ModelRequestBody } from './request-body.ts';
import type { ServedModel } from './served-model.ts';
import type { SessionRecord } from './session-record.ts';

/** Learns that a recorded model has no answer. */
export type Missed = (miss: OffsiteError) => void;

interface Asked {
  role: ModelRole;
  wire: Wire;
  body: ModelRequestBody;
  purpose: 'answer' | 'count';
}

/**
 * The model that answers a request: the asked one, its recording in any wire, or the live model behind that.
 * If there is no recorded answer, calls `missed` with what differs and throws a {@link ReplayMiss}.
 */
export function answererOf(
  { record, missed }: { record: SessionRecord; missed: Missed },
  model: ServedModel,
  { role, wire, body, purpose }: Asked,
): ServedModel {
  const { recording, live } = model;
  if (!recording) return model;
  const { json, bytes, streamed } = body;
  const number = record.entries.length + 1;
  try {
    const upstream = recording({ role, wire, json, streamed, purpose, number, bytes: bytes.length });
    if (upstream !== 'live') return { ...model, wires, upstream, recording: undefined };
    if (!live) throw new Error('the recording names a live model, and there is none');
    return live;
  } catch (error) {
    if (error instanceof ReplayMiss)
      missed(new OffsiteError(error.detail, { code: 'REPLAY_MISS', kind: 'input', hint: error.advice }));
    throw error;
  }
}
