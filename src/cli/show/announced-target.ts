import type { StoredBatch } from '../../ledger/batches.ts';
import { findTarget, type Target } from '../../ledger/find-target.ts';
import { text } from '../../text/printable.ts';
import type { CommandContext } from '../context.ts';
import { isLast } from './open-trial.ts';

/** Finds what a reference names, as {@link findTarget} does. Prints which batch it takes if none is named. */
export function announcedTarget(context: CommandContext, reference = ''): Target {
  const ledger = context.ledger();
  const target = findTarget(ledger.records, reference);
  const run = target.kind === 'batch' ? undefined : target.run.id;
  const isNamed = [target.batch.id, run].some((id) => id !== undefined && begins(id, reference));
  if (!isNamed && isLast(ledger, target.batch)) announceLast(context, target.batch);
  announceOlder(context, target);
  return target;
}

/** Says that the last batch is taken, and which one that is. */
export function announceLast({ err }: Pick<CommandContext, 'err'>, { id, suite }: StoredBatch): void {
  err.print(text`batch ${id} of ${suite}, the last one`);
}

/** Says which older batch is taken, if the last one has no run of the name, and which others have one. */
export function announceOlder({ err }: Pick<CommandContext, 'err'>, target: Target): void {
  const { batch, olderToo: others } = target;
  if (others === undefined) return;
  const listed = others.slice(0, othersNamed).join(', ');
  const more = others.length > othersNamed ? ` and ${others.length - othersNamed} more` : '';
  const too = others.length === 0 ? '' : `; also in ${listed}${more}`;
  err.print(text`batch ${batch.id} of ${batch.suite}, the newest that has it${too}`);
}

const othersNamed = 5;

/** Whether the first word of a reference is the id, or the beginning of it. */
function begins(id: string, reference: string): boolean {
  const [word = ''] = reference.trim().split(/[:#\s]/);
  return word !== '' && (id.startsWith(word) || id.replace(/^(batch|run)_/, '').startsWith(word));
}
