import { modelsInData } from '../../probe/server-models.ts';
import type { WireModels } from '../wire-descriptor.ts';

/** https://docs.anthropic.com/en/api/models-list */
export const models: WireModels = {
  query: 'limit=1000',
  read: (document) =>
    document.has_more !== undefined && document.object !== 'list' ? modelsInData(document) : undefined,
  list: (names) => ({
    data: names.map(entry),
    has_more: false,
    first_id: names[0] ?? null,
    last_id: names.at(-1) ?? null,
  }),
  entry,
};

/** The creation date is unknown, so this uses the epoch. */
function entry(name: string): object {
  return { type: 'model', id: name, display_name: name, created_at: new Date(0).toISOString() };
}
