import { isObject, parsed } from '../wires/lenient.ts';
import type { NeutralRequest } from './neutral-request.ts';

/** The arguments of a tool whose client expects text: the text as one argument. */
export const freeFormParameters = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
};

export function freeFormArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The text in the arguments of a free-form tool, whatever the model wrote. */
export function freeFormInput(given: string): string {
  const value = parsed(given);
  return isObject(value) && typeof value.input === 'string' ? value.input : given;
}

export function isFreeFormTool({ tools }: NeutralRequest, name: string): boolean {
  return tools.some((tool) => tool.name === name && tool.freeForm);
}
