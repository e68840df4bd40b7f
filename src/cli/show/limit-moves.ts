import type { StoredBatch } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Stretch } from '../../ledger/limits.ts';
import { type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';

/** How the limits of a batch's models moved while it ran, oldest first. */
export function limitMoves(
  { limits, records }: Ledger,
  { key, startedAt }: StoredBatch,
  { models, isOver }: { models: ReadonlySet<string | undefined>; isOver: boolean },
): Stretch[] {
  const last = records.get(
    'SELECT max(finished_at) AS at FROM trials WHERE run IN (SELECT key FROM runs WHERE batch = ?)',
    key,
  );
  const until = isOver ? Number(last?.at ?? startedAt) : Number.MAX_SAFE_INTEGER;
  return limits.moves(startedAt, until).filter(({ model }) => models.has(model));
}

const reasons: Record<string, string> = {
  room: 'the model had room for more',
  refused: 'the model refused a request',
  waiting: 'answers waited in the queue of the model',
  most: 'the configuration allows no more',
};

/** A line for each model: how far its limit moved, how often, and why it moved last. */
export function limitLines(moves: readonly Stretch[]): Printable[] {
  const models = [...new Set(moves.map(({ model }) => model))];
  return models.map((model) => {
    const own = moves.filter((move) => move.model === model);
    const ends = own.flatMap(({ from, to }) => [from, to]);
    const steps = own.reduce((sum, move) => sum + move.steps, 0);
    const last = own.at(-1);
    const why = reasons[last?.why ?? ''] ?? last?.why ?? '';
    return text`requests in flight at ${model}: at most ${Math.min(...ends)} to ${Math.max(...ends)}, ${plural(
      steps,
      'move',
    )}; the last one to ${last?.to ?? 0}: ${why}`;
  });
}
