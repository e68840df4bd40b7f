import type { ChatMessage } from '../../src/gateway/chat/chat.ts';
import type { HarnessContext, Runner } from '../../src/harness/runner.ts';
import { OffsiteError } from '../../src/offsite-error.ts';
import { takeTurn } from './turn.ts';

/**
 * Offsite's own minimal agent: a model with a shell. The loop runs in this process, and only its commands run
 * in the sandbox. So the trajectory is exact, and it works with any model on any wire.
 */
export const bash: Runner = {
  name: 'bash',
  label: 'Bash (a model with one shell tool, run by Offsite)',
  wires: 'any',
  reportsCommands: true,
  continues: true,
  mcp: [],
  limits: ['turns'],
  open(context) {
    const { model } = context;
    if (!model) throw needsModel(context);
    const conversation: ChatMessage[] = [];
    return { turn: (message, limits) => takeTurn({ ...context, model }, conversation, message, limits) };
  },
};

function needsModel({ profile }: HarnessContext): OffsiteError {
  const of = profile.name === undefined ? '' : ` of profile ${profile.name}`;
  return new OffsiteError(`the bash harness${of} has no model to ask`, {
    code: 'RUNNER_NEEDS_MODEL',
    kind: 'input',
    hint: "Configure the variant's model under models in offsite.yaml, and give the sandbox network: model.",
  });
}
