import { createReadStream, statSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import type { Client } from '../../client/client.ts';
import { defaultChannel } from '../../contract/catalog.ts';
import { evidenceTypes } from '../../contract/report.ts';
import { readText } from '../../suite/yaml-file.ts';
import { table } from '../../text/fit.ts';
import type { Content } from '../../text/output.ts';
import { stack, text, whole } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { wholeNumber, withService } from '../options.ts';
import type { CommonOptions } from '../settings.ts';

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

export function integrationsCommand() {
  return withService(new Command('integrations'))
    .description('list the harnesses, sandboxes and models that the service can connect')
    .action((options) =>
      askService(
        options,
        (client, signal) => client.call('connectors.integrations', {}, { signal }),
        (integrations) =>
          table(
            ['id', 'category', 'label', 'needs'],
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
                ['case', 'name', 'suite', 'tags'],
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

export function promptsCommand() {
  const prompts = new Command('prompts').description('read, write and promote versioned prompts');
  for (const command of [getCommand(), promoteCommand(), writeCommand()]) prompts.addCommand(command);
  return prompts;
}

function getCommand() {
  return withService(new Command('get'))
    .description('show a prompt as callers receive it, or another version; --json prints its exact text')
    .argument('<id>', 'the id of the prompt')
    .option('--version <n>', 'show this version', wholeNumber)
    .option('--channel <name>', 'show the version that this channel points to')
    .action((id, { version, channel, ...options }) =>
      askService(
        options,
        (client, signal) => client.call('prompts.get', { id, version, channel }, { signal }),
        (prompt) => whole(prompt.content),
      ),
    );
}

function promoteCommand() {
  return withService(new Command('promote'))
    .description('give a version of a prompt to the callers of a channel')
    .argument('<id>', 'the id of the prompt')
    .argument('<channel>', `${defaultChannel} is for callers that name no channel`)
    .argument('<version>', 'from 1', wholeNumber)
    .action((id, channel, version, options) =>
      askService(
        options,
        (client, signal) => client.call('prompts.promote', { id, channel, version }, { signal }),
        () => text`${channel} of ${id} is now version ${version}`,
      ),
    );
}

function writeCommand() {
  return withService(new Command('write'))
    .description(
      'append a version to a prompt (only the embedded service can; the specification has no such operation); ' +
        'once the prompt has a channel, callers receive a version only after it is promoted',
    )
    .argument('<id>', 'the id of the prompt')
    .argument('<file>', "the version's text")
    .action((id, file, options) =>
      askService(
        options,
        (client, signal) => client.call('prompts.write', { id, content: readText(file) }, { signal }),
        ({ version }) =>
          stack([
            text`${id} has version ${version}`,
            text`while ${id} has no channel, callers receive it at once; otherwise promote it: offsite service prompts promote ${id} ${defaultChannel} ${version}`,
          ]),
        { creates: true },
      ),
    );
}

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
                ['trial', 'audited', 'why not'],
                trials.map(({ id, ordinal, level, reason }) => [
                  text`${id} #${ordinal}`,
                  level ?? 'no',
                  reason ?? '',
                ]),
              ),
      ),
    );
}

/**
 * Calls the configured service, or the embedded one, and prints the answer: with --json unchanged, otherwise
 * as `show` formats it. An interruption ends the call.
 */
async function askService<Answer>(
  options: CommonOptions,
  ask: (client: Client, signal: AbortSignal) => Promise<Answer>,
  show: (answer: Answer) => Content,
  how: { creates?: boolean } = {},
): Promise<void> {
  await using context = CommandContext.open(options, how);
  const { signal } = context.interruption();
  const { client } = await context.service();
  const answer = await ask(client, signal);
  if (options.json) context.out.json(answer);
  else context.out.print(show(answer));
}
