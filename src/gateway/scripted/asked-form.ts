import type { ScriptTurn } from '../../suite/script-file.ts';
import { Losses } from '../translation/losses.ts';
import type { JsonObject } from '../wires/lenient.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { sampleOf } from './sample-of-schema.ts';

type FormAnswer = Pick<ScriptTurn, 'text' | 'calls'>;

/**
 * The answer to a request that demands JSON of a schema, or the call of a certain tool: a document that the
 * schema allows. Undefined if it demands neither, or cannot be read.
 */
export function formAnswer(wire: WireDescriptor, body: JsonObject): FormAnswer | undefined {
  const asked = readAsked(wire, body);
  if (!asked) return undefined;
  const { format, toolChoice, tools } = asked;
  if (format) return { text: JSON.stringify(sampleOf(format.schema ?? {})) };
  const wanted = typeof toolChoice === 'object' ? toolChoice.tool : undefined;
  const tool = tools.find(({ name }) => name === wanted);
  if (!tool) return undefined;
  return { calls: [{ tool: tool.name, arguments: sampleOf(tool.parameters) as JsonObject }] };
}

function readAsked(wire: WireDescriptor, body: JsonObject) {
  try {
    return wire.translation.readRequest(body, new Losses('lenient', 'a scripted model'));
  } catch {
    return undefined;
  }
}
