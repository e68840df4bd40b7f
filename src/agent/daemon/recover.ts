import { existsSync } from 'node:fs';
import type { Client } from '../../client/client.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { messageOf } from '../../offsite-error.ts';
import { openBatch } from '../batch-run.ts';
import { pullSetups } from '../pull.ts';

export interface RecoverParts {
  ledger: Ledger;
  client: Client;
  /** The service's name in the ledger. */
  service: string;
}

/** A batch that cannot be gone on with yet. */
interface Unmended {
  batch: string;
  reason: string;
}

/**
 * Mends what an earlier daemon of the data folder left half done: pulls the setups of batches that it had started, and gives up calls
 * whose answer was lost and whose file in the queue somebody has removed. A batch that cannot be mended holds up no other:
 * resolves with those there are.
 */
export async function recover(parts: RecoverParts, signal: AbortSignal): Promise<Unmended[]> {
  const { ledger, service } = parts;
  for (const start of ledger.starts.open()) {
    if (start.service !== service || start.lock !== daemonLock) continue;
    if (start.file === undefined || !existsSync(start.file))
      ledger.starts.unknown(start.key, 'its file was removed');
  }
  const unmended: Unmended[] = [];
  for (const batch of ledger.batches.open()) {
    if (batch.service !== service || batch.lock !== daemonLock) continue;
    try {
      await pullSetups(openBatch(batch, ledger), parts, signal);
    } catch (error) {
      signal.throwIfAborted();
      unmended.push({ batch: batch.id, reason: messageOf(error) });
    }
  }
  return unmended;
}
