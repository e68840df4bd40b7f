import type { Wire } from '../../suite/model-config.ts';

/** What `/v1/models` and `/v1/models/NAME` answer, in the shape of the wire's maker. */
export function modelList(wire: Wire, names: readonly string[]): object {
  const data = names.map((name) => modelEntry(wire, name));
  if (wire !== 'anthropic-messages') return { object: 'list', data };
  return { data, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null };
}

/** Nobody knows when it was made: the date is the epoch's. */
export function modelEntry(wire: Wire, name: string): object {
  if (wire !== 'anthropic-messages') return { id: name, object: 'model', created: 0, owned_by: 'offsite' };
  return { type: 'model', id: name, display_name: name, created_at: new Date(0).toISOString() };
}
