import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, watch } from 'node:fs';
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { queueTickets } from '../../bounds/suite.ts';
import { openDataFolder } from '../../ledger/data-folder.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { readText } from '../../suite/yaml-file.ts';
import { plainText } from '../../text/output.ts';
import { type KnownPlan, readPlan, storedPlan } from '../stored-plan.ts';

/** A batch to be started by the daemon: a file in the data folder that holds all of the checked suite. */

const ending = '.batch.json';
const partialEnding = '.partial';

function queueFolderOf(dataFolder: string): string {
  return join(dataFolder, 'queue');
}

/**
 * Queues a checked suite for the data folder's daemon: whole and synced before it has its name. Returns the
 * file.
 */
export async function writeTicket(dataFolder: string, plan: SuitePlan): Promise<string> {
  const folder = queueFolderOf(dataFolder);
  const at = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15);
  const suite = plan.suite.id.replace(/[^\w.-]/g, '_').slice(0, 40);
  const file = join(folder, `${at}-${suite}-${randomUUID()}${ending}`);
  const partial = `${file}${partialEnding}`;
  try {
    openDataFolder(dataFolder);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await using handle = await open(partial, 'wx', 0o600);
    await handle.writeFile(JSON.stringify(storedPlan({ plan, prompt: '' })));
    await handle.sync();
    await rename(partial, file);
    await using directory = await open(folder);
    await directory.sync();
    return file;
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    await rm(partial, { force: true });
    throw new OffsiteError(`cannot queue the suite in ${folder}: ${messageOf(error)}`, {
      code: 'QUEUE_NOT_WRITTEN',
      kind: 'infrastructure',
      hint: 'Check that the disk is not full and that the data folder is yours.',
      cause: error,
    });
  }
}

/** The files in the queue, oldest first. None where there is no queue yet. */
export async function queuedFiles(dataFolder: string): Promise<string[]> {
  const folder = queueFolderOf(dataFolder);
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && !entry.name.endsWith(partialEnding))
    .map(({ name }) => join(folder, name))
    .toSorted();
}

/**
 * Reads what {@link writeTicket} wrote; the batch's `file` is the ticket's own, which names it in the ledger.
 * Throws `TICKET_BAD`.
 */
export function readTicket(file: string): KnownPlan {
  // What `enqueue` wrote stands in the folder itself.
  const reach = { within: [dirname(file)], except: [] };
  try {
    const { plan, prompt } = readPlan(
      JSON.parse(readText(file, { reach, maximumBytes: queueTickets.bytes.ticket })),
    );
    if (plan.cases.length === 0 || plan.variants.length === 0)
      throw new Error('it has no case or no variant');
    return { prompt, plan: { ...plan, file } };
  } catch (error) {
    throw new OffsiteError(`this is no batch that \`offsite enqueue\` wrote: ${messageOf(error)}`, {
      code: 'TICKET_BAD',
      kind: 'input',
      cause: error,
    });
  }
}

/** Moves a file that cannot be started to the folder `refused`, with the reason beside it. */
export async function refuseTicket(dataFolder: string, file: string, reason: string): Promise<string> {
  const folder = join(queueFolderOf(dataFolder), 'refused');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const target = join(folder, basename(file));
  // The reason first: a file without one would be a riddle.
  await writeFile(`${target}.reason.txt`, `${plainText(reason)}\n`, { mode: 0o600 });
  await rename(file, target);
  return target;
}

/**
 * Tells of changes in the queue as they happen, where the system can: a look now and then finds them anyway.
 */
export function watchQueue(dataFolder: string, changed: () => void): Disposable {
  const folder = queueFolderOf(dataFolder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const watcher = watch(folder, changed);
    watcher.on('error', () => watcher.close());
    return { [Symbol.dispose]: () => watcher.close() };
  } catch {
    // The system has no watches left, or knows none for this folder.
    return { [Symbol.dispose]: () => undefined };
  }
}
