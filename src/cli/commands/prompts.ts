import { Command } from '@commander-js/extra-typings';
import { readText } from '../../suite/yaml-file.ts';
import { text, whole } from '../../text/printable.ts';
import { wholeNumber, withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function promptsCommand() {
  const prompts = new Command('prompts').description('read and promote versioned prompts');
  for (const command of [getCommand(), promoteCommand(), writeCommand()]) prompts.addCommand(command);
  return prompts;
}

function getCommand() {
  return withService(new Command('get'))
    .description('show a prompt: its newest version, or another; --json prints its exact text')
    .argument('<id>')
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
    .description('point a channel at a version of a prompt')
    .argument('<id>')
    .argument('<channel>')
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
      'append a version to a prompt (only the embedded service can; the specification has no such operation)',
    )
    .argument('<id>')
    .argument('<file>', "the version's text")
    .action((id, file, options) =>
      askService(
        options,
        (client, signal) => client.call('prompts.write', { id, content: readText(file) }, { signal }),
        (prompt) => text`${id} has version ${prompt.version}`,
      ),
    );
}
