import { Command } from '@commander-js/extra-typings';
import { defaultChannel } from '../../contract/catalog.ts';
import { readText } from '../../suite/yaml-file.ts';
import { stack, text, whole } from '../../text/printable.ts';
import { wholeNumber, withService } from '../options.ts';
import { askService } from '../with-client.ts';

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
      ),
    );
}
