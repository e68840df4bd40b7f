import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Client } from '../../client/client.ts';
import { daemonLock } from '../../ledger/claims.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { messageOf } from '../../offsite-error.ts';
import { pullSetups } from '../queue-trials.ts';
import { openBatch } from '../resume-batch.ts';

export interface RecoverParts {
  ledger: Ledger;
  client: Client;
  /** The service's name in the ledger. */
  service: string;
  log: Logger;
}

/**
 * Mends what an earlier daemon of the data folder left half done: pulls the setups of batches that it had started, and gives up calls
 * whose answer was lost and whose file in the queue somebody has removed. A batch that cannot be mended holds up no other: says whether
 * there is none.
 */
export async function recover(parts: RecoverParts, signal: AbortSignal): Promise<boolean> {
  const { ledger, service, log } = parts;
  for (const start of ledger.starts.open()) {
    if (start.service !== service || start.lock !== daemonLock) continue;
    if (start.file === undefined || !existsSync(start.file))
      ledger.starts.unknown(start.key, 'its file was removed');
  }
  let isWhole = true;
  for (const batch of ledger.batches.open()) {
    if (batch.service !== service || batch.lock !== daemonLock) continue;
    try {
      await pullSetups(openBatch(batch, ledger), parts, signal);
    } catch (error) {
      signal.throwIfAborted();
      isWhole = false;
      log.error({ batch: batch.id, reason: messageOf(error) }, 'cannot go on with a batch yet');
    }
  }
  return isWhole;
}
