#include "tokenizer.h"

NB_MODULE(_native, module) {
  module.attr("__version__") = PORTICO_VERSION;
  portico::python::BindEncoding(module);
  portico::python::BindTokenizer(module);
  portico::python::BindDecodeStream(module);
  portico::python::BindChatTemplate(module);
}
