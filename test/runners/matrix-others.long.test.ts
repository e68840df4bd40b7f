import { wires } from '../../src/suite/model-config.ts';
import { matrix } from './matrix.ts';

matrix(wires.filter((wire) => !wire.startsWith('openai-')));
