import { isObject, type JsonObject, member, objectsOf } from '../lenient.ts';
import { type ModelRequest, type RequestMessage, textsOf, toolOf } from '../model-request.ts';

/**
 * Calls and responses need no ids on this wire. A call without an id gets its number. A response without an
 * id belongs to the next call of its name.
 */
export function read(body: JsonObject): ModelRequest {
  const messages: RequestMessage[] = [];
  const waiting: { id: string; name: unknown }[] = [];
  let calls = 0;
  for (const { role, parts: given } of objectsOf([body.contents].flat())) {
    const parts = objectsOf([given].flat());
    const texts = textsOf(parts.filter(({ thought }) => thought !== true));
    if (role === 'model') {
      const called = parts.map(({ functionCall }) => functionCall).filter(isObject);
      const requested = called.map(({ id, name, args }) => {
        const call = { id: typeof id === 'string' && id !== '' ? id : `call_${calls}`, name };
        calls += 1;
        waiting.push(call);
        return { id: call.id, name: String(name), arguments: args };
      });
      messages.push({ from: 'model', texts, calls: requested });
      continue;
    }
    const results = parts.map(({ functionResponse }) => functionResponse).filter(isObject);
    for (const { id, name, response } of results) {
      const at = waiting.findIndex((call) => (id ? call.id === id : call.name === name));
      const [call] = at === -1 ? [] : waiting.splice(at, 1);
      messages.push({ from: 'tool', callId: call?.id ?? String(id), texts: [textOf(response)] });
    }
    if (results.length === 0) messages.push({ from: 'user', texts });
    else if (texts.length > 0) messages.push({ from: 'user', texts, besideResults: true });
  }
  const declared = objectsOf(body.tools).flatMap(({ functionDeclarations }) =>
    objectsOf(functionDeclarations),
  );
  return {
    system: textsOf(member(body.systemInstruction, 'parts')),
    messages,
    tools: declared.flatMap((tool) => toolOf(tool.name, tool.parametersJsonSchema ?? tool.parameters)),
  };
}

function textOf(response: unknown): string {
  const content = member(response, 'output') ?? member(response, 'error');
  return typeof content === 'string' ? content : JSON.stringify(response ?? {});
}
