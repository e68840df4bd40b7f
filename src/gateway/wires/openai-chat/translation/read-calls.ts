import type { CallPieces } from '../../../translation/call-pieces.ts';
import type { StreamSteps } from '../../../translation/stream-steps.ts';
import { isObject, type JsonObject } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';

interface Call {
  index: number | undefined;
  id: string;
  pieces: CallPieces;
}

interface Piece {
  index: number | undefined;
  id: string;
  name: string;
  arguments: string;
}

/**
 * Reads pieces of tool calls. To which call a piece belongs is decided by its index, id, name and position
 * together: servers number all calls 0 or not at all, leave ids out, change them in each piece, or repeat
 * names.
 */
export function callsOf(steps: StreamSteps): (piece: JsonObject) => void {
  const calls: Call[] = [];
  return (given) => {
    const piece = pieceOf(given);
    const { index, id } = piece;
    const last = calls.at(-1);
    // Some servers end arguments that are whole with an empty object.
    const isNothing = piece.arguments === '' || (isEmpty(piece.arguments) && last?.pieces.isWhole);
    if (id === '' && piece.name === '' && isNothing) return;
    let call = callOf(calls, piece);
    if (!call) {
      call = { index, id, pieces: steps.call() };
      calls.push(call);
      // A second call of the same tool may come without its name.
      if (piece.name === '' && id === '' && last && last.index === index) piece.name = last.pieces.name;
    }
    if (call.id === '') call.id = id;
    call.pieces.add({ id, name: piece.name, arguments: piece.arguments });
  };
}

/** The call that a piece continues; undefined if it begins one. */
function callOf(calls: readonly Call[], piece: Piece): Call | undefined {
  const { index, id, name } = piece;
  const sameIndex = index === undefined ? calls : calls.filter((call) => call.index === index);
  const known = id === '' ? undefined : sameIndex.findLast((call) => call.id === id);
  if (known) return isAnother(known, piece) && !known.pieces.isRepeated(piece.arguments) ? undefined : known;
  const last = sameIndex.at(-1);
  const begins = /^\s*\{/.test(piece.arguments);
  if (!last) {
    // Some servers count pieces.
    const before = calls.at(-1);
    if (id !== '' || name !== '' || !before) return undefined;
    return begins === before.pieces.hasArguments || before.pieces.isWhole ? undefined : before;
  }
  if (id !== '' && last.id !== '') {
    // Some servers give each piece an id.
    if (index !== undefined && name === last.pieces.name && begins && !last.pieces.hasArguments) return last;
    // Another id begins another call, unless the arguments clearly go on.
    const isNew = (name !== '' && (begins || piece.arguments === '')) || (begins && last.pieces.isWhole);
    return isNew ? undefined : last;
  }
  if (isAnother(last, piece)) {
    const isRepeat = name === '' && last.pieces.isRepeated(piece.arguments);
    return isRepeat ? last : undefined;
  }
  const { isWhole, name: before } = last.pieces;
  const isOther = name !== '' && before !== '' && name !== before;
  return isOther && isWhole && piece.arguments === '' ? undefined : last;
}

/** Whether a piece begins arguments, although those of the call are whole. */
function isAnother({ pieces }: Call, piece: Piece): boolean {
  const begins = /^\s*\{/.test(piece.arguments);
  const isSame = piece.name === pieces.name && !isEmpty(piece.arguments);
  const fills = pieces.isPlaceholder && (piece.name === '' || isSame);
  return begins && pieces.hasArguments && pieces.isWhole && !fills;
}

function isEmpty(given: string): boolean {
  return /^\s*\{\s*\}\s*$/.test(given);
}

function pieceOf(given: JsonObject): Piece {
  const { index } = given;
  const number = index === undefined || index === null || index === '' ? Number.NaN : Number(index);
  const called = [given.function, given.custom].find(isObject) ?? given;
  const text = called.arguments ?? called.input ?? called.parameters;
  return {
    index: Number.isFinite(number) ? number : undefined,
    // Mistral's servers have sent this text for none.
    id:
      given.id === 'null'
        ? ''
        : typeof given.id === 'number'
          ? String(given.id)
          : (stringIn(given, 'id') ?? ''),
    name: stringIn(called, 'name') ?? stringIn(given, 'function') ?? '',
    arguments:
      typeof text === 'string' ? text : text === undefined || text === null ? '' : JSON.stringify(text),
  };
}
