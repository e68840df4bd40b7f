/** Where servers of models listen by default. */
export const usualPorts: readonly number[] = [
  11_434, // Ollama
  8_080, // llama.cpp, TGI
  8_000, // vLLM
  1_234, // LM Studio
  5_001, // KoboldCpp
  30_000, // SGLang
  4_000, // LiteLLM
];
