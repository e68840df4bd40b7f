import { Command } from '@commander-js/extra-typings';
import { table } from '../../text/table.ts';
import { withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function integrationsCommand() {
  return withService(new Command('integrations'))
    .description('list the harnesses, sandboxes and models that the service can connect')
    .action((options) =>
      askService(
        options,
        (client, signal) => client.call('connectors.integrations', {}, { signal }),
        (integrations) =>
          table(
            [{ title: 'id' }, { title: 'category' }, { title: 'label' }, { title: 'needs' }],
            integrations.map(({ id, category, label, authMethods }) => [
              id,
              category,
              label,
              authMethods
                .map((method) => method.fields.map(({ name }) => name).join(' + ') || method.label)
                .join(', or ') || '–',
            ]),
          ),
      ),
    );
}
