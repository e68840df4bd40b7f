import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { messageOf } from '../../base/offsite-error.ts';
import { foreignLogs } from '../../bounds/anyone.ts';
import { type ForeignLog, unreadableLog } from '../../export/foreign-log.ts';
import { storeForeignBatch } from '../../ledger/foreign-batches.ts';
import { text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';

export function importLogCommand() {
  return withConfigAndData(new Command('import-log'))
    .description(
      'read a log of another program as a batch, to show it and to compare it; it is never graded again, ' +
        'resumed or reported',
    )
    .argument('<path>', 'a .eval log of inspect_ai, a folder of them, or a job folder of Harbor')
    .action(async (path, options) => {
      await using context = CommandContext.open(options, { creates: true });
      const { signal } = context.interruption({ doing: () => 'ending' });
      const { redactor, out } = context;
      const log = await openLog(path);
      const trials = async function* () {
        for await (const trial of log.trials) {
          signal.throwIfAborted();
          yield redactor.value(trial);
        }
      };
      const head = redactor.value({ suite: log.suite, startedAt: log.startedAt });
      const { id } = await storeForeignBatch(context.ledger(), head, trials());
      out.print(text`imported ${id}; see it: offsite show ${id}`);
    });
}

/** Throws `LOG_UNREADABLE`. */
async function openLog(path: string): Promise<ForeignLog> {
  const { readInspectLogs } = await import('../../export/read-inspect-log.ts');
  if (!isFolder(path)) return readInspectLogs([path]);
  const names = readdirSync(path);
  if (names.length > foreignLogs.count.files) throw unreadableLog(path, 'it has too many entries');
  const logs = names.filter((name) => name.endsWith('.eval')).toSorted();
  if (logs.length > 0) return readInspectLogs(logs.map((name) => join(path, name)));
  const { readHarborJob } = await import('../../export/read-harbor-job.ts');
  return readHarborJob(path);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw unreadableLog(path, messageOf(error), error);
  }
}
