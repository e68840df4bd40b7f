import { Command } from '@commander-js/extra-typings';
import { stack, text } from '../../text/printable.ts';
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
          stack([
            text`organization  ${organization.name} (${organization.slug}, ${organization.id})`,
            credential.kind === 'apiKey'
              ? text`credential    apiKey ${credential.name ?? ''} ${credential.start ?? ''}…`
              : text`credential    ${credential.kind}`,
            text`permissions   ${permissions.join(', ')}`,
          ]),
      ),
    );
}
