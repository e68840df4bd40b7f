import { createReadStream, statSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { evidenceTypes } from '../../contract/evidence.ts';
import { text } from '../../text/printable.ts';
import { table } from '../../text/table.ts';
import { exitCodes } from '../exit-codes.ts';
import { withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function evidenceCommand() {
  return withService(new Command('evidence'))
    .description('send evidence of reported trials to the service, which audits it and marks the trials')
    .argument(
      '<what>',
      'a file that `offsite export --evidence` wrote; or the id of a run, to show its marks',
    )
    .action((what, options) =>
      askService(
        options,
        async (client, signal) => {
          const found = statSync(what, { throwIfNoEntry: false });
          if (!found?.isFile()) return client.call('evals.evidence', { id: what }, { signal });
          const [type] = evidenceTypes;
          const file = { type, byteSize: found.size, open: () => createReadStream(what) };
          const answer = await client.sendEvidence(file, { signal });
          if (answer.trials.some(({ level }) => level === undefined))
            process.exitCode = exitCodes.belowThreshold;
          return answer;
        },
        ({ trials }) =>
          trials.length === 0
            ? 'no audited trials'
            : table(
                [{ title: 'trial' }, { title: 'audited' }, { title: 'why not' }],
                trials.map(({ id, ordinal, level, reason }) => [
                  text`${id} #${ordinal}`,
                  level ?? 'no',
                  reason ?? '',
                ]),
              ),
      ),
    );
}
