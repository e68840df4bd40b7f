import type { Client } from '../client/client.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { expandVariables } from '../suite/variables.ts';

/**
 * The suite's prompt as text, read from the service where it holds it. Throws an `input` error where that text names a variable that a
 * case does not have: a prompt in the suite file was checked when the file was read, this one can only be now.
 */
export async function resolvePrompt(plan: SuitePlan, client: Client, signal: AbortSignal): Promise<string> {
  const { prompt } = plan.suite;
  if (prompt.kind === 'text') return prompt.text;
  const { id, channel, version } = prompt;
  const { content } = await client.call('prompts.get', { id, channel, version }, { signal });
  const unknown = plan.cases.flatMap(({ request }) => {
    const names: string[] = [];
    expandVariables(content, request.variables ?? {}, (name) => names.push(name));
    return names.map((name) => `{{${name}}} in case ${request.id}`);
  });
  if (unknown.length > 0) {
    throw new OffsiteError(
      `the prompt ${id} of the service names what is not a variable: ${unknown.join(', ')}`,
      {
        code: 'PROMPT_VARIABLE_UNKNOWN',
        kind: 'input',
        hint: `Add the variables to ${plan.file}, or promote another version of the prompt.`,
      },
    );
  }
  return content;
}
