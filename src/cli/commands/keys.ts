import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { localOrganization } from '../../api/service-access.ts';
import type { Clock } from '../../base/clock.ts';
import { isLoopback } from '../../base/foreign-traffic.ts';
import { inputError } from '../../base/offsite-error.ts';
import { createClient } from '../../client/client.ts';
import { type Permission, permissions } from '../../contract/definition.ts';
import { requireDataFolder } from '../../ledger/data-folder.ts';
import { openService, type Service, serviceDatabase } from '../../service/service.ts';
import { table } from '../../text/fit.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';
import type { CommonOptions } from '../settings.ts';
import { openTerminal } from '../terminal.ts';

export function keysCommand() {
  const keys = withConfigAndData(new Command('keys'))
    .description('API keys of the embedded service, in the data folder of this machine: list them')
    .option('--json', 'print one JSON document on stdout')
    .action(list);
  for (const command of [createCommand(), listCommand(), revokeCommand()])
    keys.addCommand(command as unknown as Command);
  return keys;
}

function createCommand() {
  return withConfigAndData(new Command('create'))
    .description('create a key and print its secret, only this once')
    .option('--name <name>', 'what the key is for')
    .option('--organization <name>', 'its organization, created if new', localOrganization)
    .addOption(
      new Option('--for <use>', 'what may do its work with the key, and no more').choices(
        Object.keys(uses) as Use[],
      ),
    )
    .option('--permission <permission...>', 'what the key may do, in place of --for', permission)
    .action((options) =>
      withEmbedded({ ...options, creates: true }, async (service, context) => {
        const { out, err } = openTerminal();
        const { name, organization } = options;
        const key = service.createKey({
          organization,
          permissions: permissionsFor(options),
          ...(name !== undefined && { name }),
        });
        err.print(
          `key ${key.id} of ${key.organization}, in ${context.dataFolder}; its secret is shown now and never again:`,
        );
        await warnOfOtherService(context, key.secret);
        out.print(key.secret);
      }),
    );
}

/**
 * Says that the service of other commands may have other keys than the data folder. Nothing is refused: the
 * server may be one of this machine, with the same data folder.
 *
 * @param secret of a new key, by which a server of this machine is asked; no other machine is shown it
 */
async function warnOfOtherService({ config, dataFolder, env, clock }: CommandContext, secret?: string) {
  const url = env.OFFSITE_URL ?? config.service?.url;
  if (!url) return;
  const isHere = URL.canParse(url) && isLoopback(new URL(url).hostname);
  if (isHere && (secret === undefined || (await isKnownAt(url, secret, clock)))) return;
  const keys = secret === undefined ? 'the keys of this folder' : 'this key';
  openTerminal().err.print(
    `warning: commands use the service ${url} here, which knows ${keys} only if ${dataFolder} is its data folder; ` +
      'otherwise use this command on its machine, with its --data-folder',
  );
}

async function isKnownAt(url: string, secret: string, clock: Clock): Promise<boolean> {
  await using client = createClient({ url, apiKey: secret, clock, retry: { attempts: 1 } });
  return await client.call('auth.whoami', {}, { deadlineMs: 2_000 }).then(
    () => true,
    () => false,
  );
}

/**
 * What each kind of user of the service needs. `agent`: a person or a CI job that starts batches, runs their
 * trials and reports them. `daemon`: a machine that runs and reports what others started; the contract has no
 * right that is less than `evals:write` for that. `read`: a viewer.
 */
const uses = {
  agent: ['evals:read', 'evals:write', 'prompts:read'],
  daemon: ['evals:read', 'evals:write'],
  read: permissions.filter((name) => name.endsWith(':read')),
  admin: permissions,
} as const satisfies Record<string, readonly Permission[]>;
type Use = keyof typeof uses;

function permissionsFor(given: { for?: Use | undefined; permission?: Permission[] | undefined }) {
  if (given.permission) return given.permission;
  if (given.for) return uses[given.for];
  throw inputError('KEY_WITHOUT_USE', 'what is the key for?', {
    hint: `Say --for ${Object.keys(uses).join(', --for ')}, or name each --permission.`,
  });
}

function listCommand() {
  return withConfigAndData(new Command('list'))
    .description('list the keys, without their secrets')
    .option('--json', 'print one JSON document on stdout')
    .action(list);
}

function list(options: CommonOptions): Promise<void> {
  return withEmbedded(options, async (service, context) => {
    const { out } = openTerminal();
    await warnOfOtherService(context);
    const keys = service.listKeys();
    if (options.json) return out.json(keys);
    const rows = keys.map((key) => [
      key.id,
      key.organization,
      key.name ?? '',
      key.start ? `${key.start}…` : '',
      key.revokedAt === null ? 'active' : 'revoked',
      key.permissions.length === permissions.length ? 'everything' : key.permissions.join(', '),
    ]);
    const titles = ['key', 'organization', 'name', 'start', 'state', 'permissions'];
    out.print(table(titles, rows));
  });
}

function revokeCommand() {
  return withConfigAndData(new Command('revoke'))
    .description('revoke a key')
    .argument('<id>', "the key's id, as `offsite service keys list` shows it")
    .action((id, options) =>
      withEmbedded(options, async (service, context) => {
        await warnOfOtherService(context);
        service.revokeKey(id);
        openTerminal().out.print(`key ${id} is revoked`);
      }),
    );
}

async function withEmbedded(
  options: { config?: string | undefined; dataFolder?: string | undefined; creates?: true },
  work: (service: Service, context: CommandContext) => Promise<void>,
): Promise<void> {
  await using context = CommandContext.open(options);
  const { dataFolder, clock } = context;
  if (!options.creates) requireDataFolder(dataFolder);
  const exists = existsSync(join(dataFolder, serviceDatabase));
  if (!exists && options.creates)
    context.note(
      `no service has its keys in ${dataFolder} yet: \`offsite serve\` with this folder uses them`,
    );
  if (!exists && !options.creates)
    throw inputError('NO_SERVICE', `no service keeps its keys in ${dataFolder}`, {
      hint: "Name the service's own data folder with --data-folder.",
    });
  await using service = openService({ dataFolder, clock, integrations: [] });
  await work(service, context);
}

function permission(text: string, before: Permission[] | undefined): Permission[] {
  const known = permissions.find((name) => name === text);
  if (!known) throw new InvalidArgumentError(`expected one of ${permissions.join(', ')}.`);
  return [...(before ?? []), known];
}
