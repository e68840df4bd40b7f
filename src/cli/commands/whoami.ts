import { Command } from '@commander-js/extra-typings';
import { withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function whoamiCommand() {
  return withService(new Command('whoami'))
    .description('show which organization the key belongs to, and what it may do')
    .action((options) =>
      askService(
        options,
        (client, signal) => client.call('auth.whoami', {}, { signal }),
        ({ organization, credential, permissions }) =>
          [
            `organization  ${organization.name} (${organization.slug}, ${organization.id})`,
            `credential    ${credential.kind}${credential.kind === 'apiKey' ? ` ${credential.name ?? ''} ${credential.start ?? ''}…` : ''}`,
            `permissions   ${permissions.join(', ')}`,
          ].join('\n'),
      ),
    );
}
