import { Command } from '@commander-js/extra-typings';
import { table } from '../../text/table.ts';
import { withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function casesCommand() {
  return withService(new Command('cases'))
    .description('list the cases that the service knows')
    .option('--suite <suite>', "only the cases of this suite: the suite's id")
    .action((options) =>
      askService(
        options,
        (client, signal) => client.call('evals.cases.list', { suite: options.suite }, { signal }),
        ({ cases }) =>
          cases.length === 0
            ? 'no cases'
            : table(
                [{ title: 'case' }, { title: 'name' }, { title: 'suite' }, { title: 'tags' }],
                cases.map(({ id, name, suite, tags }) => [
                  id,
                  name ?? '',
                  suite?.id ?? '',
                  tags?.join(', ') ?? '',
                ]),
              ),
      ),
    );
}
