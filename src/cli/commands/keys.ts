import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { type Permission, permissions } from '../../contract/identity.ts';
import { openService, type Service } from '../../service/service.ts';
import { table } from '../../text/table.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';
import { localOrganization } from '../service-access.ts';
import { openTerminal } from '../terminal.ts';

export function keysCommand() {
  const keys = new Command('keys').description(
    'API keys of the embedded service, in the data folder of this machine',
  );
  for (const command of [createCommand(), listCommand(), revokeCommand()]) keys.addCommand(command);
  return keys;
}

function createCommand() {
  return withConfigAndData(new Command('create'))
    .description('create a key and print its secret, only this once')
    .option('--name <name>', 'what the key is for')
    .option('--organization <name>', 'its organization, created if new', localOrganization)
    .option('--permission <permission...>', 'what the key may do (default: everything)', permission)
    .action((options) =>
      withEmbedded(options, (service) => {
        const { out, err } = openTerminal();
        const { name, organization } = options;
        const key = service.createKey({
          organization,
          permissions: options.permission ?? permissions,
          ...(name !== undefined && { name }),
        });
        err.print(`key ${key.id} of ${key.organization}; its secret is shown now and never again:`);
        out.print(key.secret);
      }),
    );
}

function listCommand() {
  return withConfigAndData(new Command('list'))
    .description('list the keys, without their secrets')
    .option('--json', 'print one JSON document on stdout')
    .action((options) =>
      withEmbedded(options, (service) => {
        const { out } = openTerminal();
        const keys = service.listKeys();
        if (options.json) out.json(keys);
        else {
          const rows = keys.map((key) => [
            key.id,
            key.organization,
            key.name ?? '',
            key.start ? `${key.start}…` : '',
            key.revokedAt === null ? 'active' : 'revoked',
            key.permissions.length === permissions.length ? 'everything' : key.permissions.join(', '),
          ]);
          const titles = ['key', 'organization', 'name', 'start', 'state', 'permissions'];
          out.print(
            table(
              titles.map((title) => ({ title })),
              rows,
            ),
          );
        }
      }),
    );
}

function revokeCommand() {
  return withConfigAndData(new Command('revoke'))
    .description('revoke a key')
    .argument('<id>', "the key's id, as `offsite keys list` shows it")
    .action((id, options) =>
      withEmbedded(options, (service) => {
        service.revokeKey(id);
        openTerminal().out.print(`key ${id} is revoked`);
      }),
    );
}

async function withEmbedded(
  options: { config?: string | undefined; dataFolder?: string | undefined },
  work: (service: Service) => void,
): Promise<void> {
  await using context = CommandContext.open(options);
  const { dataFolder, clock } = context;
  await using service = openService({ dataFolder, clock, integrations: [] });
  work(service);
}

function permission(text: string, before: Permission[] | undefined): Permission[] {
  const known = permissions.find((name) => name === text);
  if (!known) throw new InvalidArgumentError(`expected one of ${permissions.join(', ')}.`);
  return [...(before ?? []), known];
}
